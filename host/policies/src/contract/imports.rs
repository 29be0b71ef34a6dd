//! The host's functions that a policy can import.

use wasmspawner_core::images::{ImageReference, KnownTag, NodeImages, Repository, RepositoryImages};
use wasmtime::component::{HasSelf, Linker};

use super::bindings::{FullPolicy, host, types};
use super::call_state::CallState;
use super::convert;

/// Adds the host's functions to the linker.
pub(super) fn add_to(linker: &mut Linker<CallState>) -> wasmtime::Result<()> {
    FullPolicy::add_to_linker::<_, HasSelf<CallState>>(linker, |state| state)
}

impl types::Host for CallState {}

impl host::Host for CallState {
    fn config(&mut self) -> String {
        self.policy_config().to_owned()
    }

    fn log(&mut self, level: host::Level, message: String) {
        let level = match level {
            host::Level::Debug => tracing::Level::DEBUG,
            host::Level::Info => tracing::Level::INFO,
            host::Level::Warn => tracing::Level::WARN,
            host::Level::Error => tracing::Level::ERROR,
        };
        self.write_log(level, &message);
    }

    fn clock_now(&mut self) -> u64 {
        self.note_learning_by("clock-now");
        self.now_ms()
    }

    fn random(&mut self, length: u32) -> Vec<u8> {
        self.note_learning_by("random");
        self.random_bytes(length)
    }

    fn images(&mut self, repository: String) -> Vec<host::KnownImage> {
        self.note_learning_by("images");
        // An invalid repository name has no images, just as a repository that is not listed.
        let Ok(repository) = repository.parse::<Repository>() else { return Vec::new() };
        let (registries, nodes) = (self.inventory().registries(), self.inventory().nodes());
        let tags = registries.repository(&repository).map(RepositoryImages::tags).unwrap_or_default();
        tags.iter().map(|known| known_image(&repository, known, &nodes)).collect()
    }

    fn data(&mut self, name: String) -> Option<host::SiteData> {
        self.note_learning_by("data");
        let datum = self.site_data(&name)?;
        Some(host::SiteData { version: datum.version.clone(), json: datum.json.clone() })
    }

    fn lab_nodes(&mut self) -> u32 {
        self.note_learning_by("lab-nodes");
        u32::try_from(self.inventory().nodes().count()).unwrap_or(u32::MAX)
    }

    fn child(&mut self) -> Option<host::ChildOfLab> {
        self.note_learning_by("child");
        self.subject().child.as_ref().map(convert::child)
    }

    fn present_use(&mut self) -> host::UseOfUser {
        self.note_learning_by("present-use");
        convert::present_use(self.subject().use_of_user)
    }

    fn past_use(&mut self, days: u32) -> host::UseOfDays {
        self.note_learning_by("past-use");
        convert::past_use(self.use_of_days(days))
    }

    fn blueprint(&mut self) -> Option<host::LabBlueprint> {
        self.note_learning_by("blueprint");
        self.subject().blueprint.as_ref().map(convert::blueprint)
    }

    fn last_options(&mut self) -> Vec<types::OptionEntry> {
        self.note_learning_by("last-options");
        convert::option_entries(&self.subject().last_options)
    }

    fn expand(&mut self, template: String) -> Result<String, String> {
        self.expand_template(template)
    }
}

/// Converts a tag to the form for policies, with the number of nodes that have its image.
fn known_image(repository: &Repository, known: &KnownTag, nodes: &NodeImages) -> host::KnownImage {
    let image =
        ImageReference { repository: repository.clone(), tag: Some(known.tag.clone()), digest: known.digest };
    host::KnownImage {
        tag: known.tag.to_string(),
        digest: known.digest.map(|digest| digest.to_string()),
        size_bytes: known.digest.and_then(|digest| nodes.size(repository, digest)),
        nodes_with: u32::try_from(nodes.with(&image)).unwrap_or(u32::MAX),
    }
}

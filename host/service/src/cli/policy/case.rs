//! The input of a hook.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;
use wasmspawner_core::names::spawn_key::ChildKind;
use wasmspawner_core::names::{Fields, NameTemplates, NamesConfig, ServerName, Username};
use wasmspawner_core::policy::usage::{DaysOfUser, PastUse};
use wasmspawner_core::policy::{
    Action, Group, Happening, InjectRequest, LabEvent, Options, PresentUse, SeenContainer, SeenVolume,
    SeenWorkload, Subject, SubjectChild, User,
};
use wasmspawner_core::users::quota::Usage;
use wasmspawner_core::workload::Workload;

use super::known_images::KnownImages;

/// The input of a hook. Each hook takes the parts that it needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Case {
    user: CaseUser,
    /// The name of the user's server; empty for the default server.
    pub(super) server: String,
    /// The options: for `form.parse` as they were submitted, otherwise as they were parsed.
    pub(super) options: Options,
    /// The submission with which the server was last started, for `form.render`.
    pub(super) last_options: Options,
    pub(super) action: Action,
    child: Option<CaseChild>,
    /// The user's other present use.
    #[serde(rename = "use")]
    present: PresentUse,
    /// The user's use on past days.
    past_use: Vec<CaseDay>,
    workload: Option<CaseWorkload>,
    event: CaseEvent,
    pub(super) images: KnownImages,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseUser {
    name: String,
    uid: Option<u32>,
    gid: Option<u32>,
    #[serde(default)]
    groups: Vec<CaseGroup>,
    email: Option<String>,
    display_name: Option<String>,
}

/// A group: its name, optionally with its number.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, deny_unknown_fields, expecting = "a group is its name, or {name: NAME, gid: NUMBER}")]
enum CaseGroup {
    Name(String),
    Numbered { name: String, gid: Option<u32> },
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseChild {
    kind: CaseChildKind,
    name: String,
    #[serde(default)]
    workers: u32,
}

/// The use on one day.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseDay {
    /// The number of days before today, which is 0.
    days_ago: u32,
    #[serde(default)]
    lab_seconds: u64,
    #[serde(default)]
    kernel_seconds: u64,
    #[serde(default)]
    dask_worker_seconds: u64,
    #[serde(default)]
    cpu_seconds: u64,
    #[serde(default)]
    memory_gib_seconds: u64,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CaseChildKind {
    Kernel,
    DaskPool,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseWorkload {
    /// The workload, as `KIND/NAMESPACE/NAME`.
    #[serde(deserialize_with = "workload")]
    workload: Workload,
    #[serde(default)]
    containers: Vec<SeenContainer>,
    #[serde(default)]
    volumes: Vec<SeenVolume>,
}

/// The event that the policy receives.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CaseEvent {
    what: CaseHappening,
    operation: Option<String>,
    image: Option<String>,
    took_ms: Option<u64>,
    reason: Option<String>,
    message: Option<String>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum CaseHappening {
    Spawned,
    #[default]
    Ready,
    Failed,
    Stopped,
    Denied,
}

impl Default for Case {
    fn default() -> Self {
        let ada = CaseUser {
            name: "ada".to_owned(),
            uid: Some(1000),
            gid: Some(1000),
            groups: Vec::new(),
            email: None,
            display_name: None,
        };
        Self {
            user: ada,
            server: String::new(),
            options: Options::new(),
            last_options: Options::new(),
            action: Action::Spawn,
            child: None,
            present: PresentUse::default(),
            past_use: Vec::new(),
            workload: None,
            event: CaseEvent::default(),
            images: KnownImages::default(),
        }
    }
}

impl Case {
    /// Reads the input of the questions about images: that of a hook, or the answer to `GET /images` alone.
    pub(super) fn about_images(input: Value) -> Result<Self, serde_json::Error> {
        if ["repositories", "nodes"].iter().any(|key| input.get(key).is_some()) {
            return Ok(Self { images: serde_json::from_value(input)?, ..Self::default() });
        }
        Self::deserialize(input)
    }

    /// Returns the same case with another user.
    pub(super) fn by(mut self, name: Option<String>, groups: Vec<String>) -> Self {
        self.user.name = name.unwrap_or(self.user.name);
        self.user.groups.extend(groups.into_iter().map(CaseGroup::Name));
        self
    }

    pub(super) fn user(&self) -> User {
        let CaseUser { name, uid, gid, groups, email, display_name } = self.user.clone();
        let group = |group| match group {
            CaseGroup::Name(name) => Group { name, gid: None },
            CaseGroup::Numbered { name, gid } => Group { name, gid },
        };
        let groups = groups.into_iter().map(group).collect();
        User { name, uid, gid, groups, email, display_name, ..User::default() }
    }

    pub(super) fn usage(&self) -> Usage {
        Usage { labs: self.present.labs }
    }

    pub(super) fn subject(&self) -> Subject {
        let child = self.child.as_ref().map(|child| SubjectChild {
            kind: match child.kind {
                CaseChildKind::Kernel => ChildKind::Kernel,
                CaseChildKind::DaskPool => ChildKind::DaskPool,
            },
            name: child.name.clone(),
            workers: child.workers,
        });
        let mut past_days = DaysOfUser::default();
        for day in &self.past_use {
            let used = PastUse {
                lab_seconds: day.lab_seconds,
                kernel_seconds: day.kernel_seconds,
                dask_worker_seconds: day.dask_worker_seconds,
                cpu_seconds: day.cpu_seconds,
                memory_gib_seconds: day.memory_gib_seconds,
            };
            past_days.add(day.days_ago, Timestamp::now(), used);
        }
        Subject { child, use_of_user: self.present, past_days: Arc::new(past_days), ..Subject::default() }
    }

    /// Returns the values of template fields, with the names that a site has by default.
    pub(super) fn fields(&self) -> Option<Arc<Fields>> {
        let templates = NameTemplates::parse(&NamesConfig::default()).ok()?;
        let user = Username::parse(self.user.name.as_str()).ok()?;
        let names = templates.resolve(&user, &ServerName::parse(self.server.as_str()).ok()?, None).ok()?;
        Some(Arc::new(names.fields))
    }

    pub(super) fn event(&self) -> LabEvent {
        let CaseEvent { what, operation, image, took_ms, reason, message } = self.event.clone();
        let what = match what {
            CaseHappening::Spawned => Happening::Spawned,
            CaseHappening::Ready => Happening::Ready,
            CaseHappening::Failed => Happening::Failed,
            CaseHappening::Stopped => Happening::Stopped,
            CaseHappening::Denied => Happening::Denied,
        };
        LabEvent {
            what,
            at: Timestamp::now(),
            username: self.user.name.clone(),
            server: self.server.clone(),
            operation,
            image,
            took: took_ms.map(Duration::from_millis),
            reason,
            message,
            subject: self.subject(),
        }
    }

    /// Returns the request to put a lab into the workload, or `None` without a workload.
    pub(super) fn inject_request(&self) -> Option<InjectRequest> {
        let CaseWorkload { workload, containers, volumes } = self.workload.clone()?;
        Some(InjectRequest {
            user: self.user(),
            server: self.server.clone(),
            options: self.options.clone(),
            workload: SeenWorkload { workload, containers, volumes },
        })
    }
}

fn workload<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
    let text = String::deserialize(deserializer)?;
    Workload::parse(&text).map_err(serde::de::Error::custom)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ANSWER: &str = r#"{"nodes": [{"name": "n", "excluded": null}], "repositories": [{"name": "quay.io/lab",
        "refreshed_at": "2026-01-01T00:00:00Z", "problem": {"message": "m", "since": "s"}, "images": [
        {"tag": "1", "digest": null, "nodes_with": 1}]}]}"#;

    fn read(input: &Value) -> Result<Case, String> {
        Case::about_images(input.clone()).map_err(|error| error.to_string())
    }

    #[test]
    fn the_answer_about_images_is_the_input_or_a_part_of_it() {
        let answer: Value = serde_json::from_str(ANSWER).unwrap();
        let alone = read(&answer).unwrap();
        assert_ne!(alone.images, KnownImages::default());
        let part = read(&json!({"images": answer, "user": {"name": "eve"}})).unwrap();
        assert_eq!((part.images, part.user.name.as_str()), (alone.images, "eve"));
        assert_eq!(read(&json!({})).unwrap().images, KnownImages::default());
    }

    #[test]
    fn unknown_keys_are_errors() {
        for (input, named) in [
            (json!({"image": {}}), "image"),
            (json!({"images": {"repository": []}}), "repository"),
            (json!({"repositories": [], "user": {"name": "ada"}}), "user"),
            (json!({"repositories": [{"name": "lab", "images": [], "tags": []}]}), "tags"),
            (json!({"repositories": [{"name": "lab", "images": [{"tag": "1", "size": 1}]}]}), "size"),
            (json!({"nodes": [{"name": "n", "labels": {}}]}), "labels"),
            (json!({"user": {"name": "ada", "groups": [{"name": "a", "gif": 1}]}}), "a group is its name"),
        ] {
            let error = read(&input).unwrap_err();
            assert!(error.contains(named), "{input}: {error}");
        }
    }
}

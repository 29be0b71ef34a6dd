use wasmspawner_sdk::lab_server;
use wasmspawner_sdk::pod::{Customization, EnvVar};

use super::change::Change;
use super::overrides::Overrides;
use super::pod_parts::PodParts;
use crate::env;

/// The overrides of a profile and of the choices within it, in the order in which they apply.
pub(crate) struct Chosen(pub(super) Vec<Overrides>);

impl Chosen {
    /// Applies the overrides to a lab.
    /// `container` is the name of the lab's container.
    pub(crate) fn apply(&self, lab: &mut Customization, container: &str) {
        let mut parts = PodParts::default();
        for overrides in &self.0 {
            overrides.apply(lab);
            parts.merge(&overrides.pod_parts);
        }
        lab.pod_patch = parts.patch(container);
        self.apply_program(lab);
        self.apply_settings(lab);
    }

    /// Applies the overrides to the port and the probe of the lab's program.
    pub(crate) fn apply_to_server(&self, settings: &mut lab_server::Settings) {
        for overrides in &self.0 {
            overrides.apply_to_server(settings);
        }
    }

    /// Sets the program that the overrides choose together. `cmd`, followed by `args`, becomes the container's
    /// arguments, so the image's entry point still runs first, as with KubeSpawner (7.1, `make_pod`). If no override
    /// has a `cmd`, the site's program stays, with the `args` of the overrides.
    fn apply_program(&self, lab: &mut Customization) {
        let mut command = &Change::Keep;
        for overrides in &self.0 {
            if !matches!(overrides.command, Change::Keep) {
                command = &overrides.command;
            }
            overrides.args.apply(&mut lab.args);
        }
        match command {
            Change::Keep => {}
            // The container runs the image's own program, and arguments alone would replace that program.
            Change::Unset => (lab.command, lab.args) = (None, None),
            Change::Set(words) => {
                let words = words.iter().cloned().chain(lab.args.take().unwrap_or_default());
                (lab.command, lab.args) = (None, Some(words.collect()));
            }
        }
    }

    /// Sets the variables of `default_url` and `notebook_dir`, unless the `environment` of an override sets them:
    /// JupyterHub (6.1, `Spawner.get_env`) adds that last.
    fn apply_settings(&self, lab: &mut Customization) {
        for (name, change) in self.0.iter().flat_map(|overrides| overrides.settings.by_variable()) {
            let in_environment = self.0.iter().rev().find_map(|overrides| overrides.env.get(name));
            if in_environment.is_some_and(Option::is_some) {
                continue;
            }
            match change {
                Change::Keep => {}
                Change::Unset => lab.env.retain(|variable| variable.name != name),
                Change::Set(text) => env::set(&mut lab.env, EnvVar::literal(name, text)),
            }
        }
    }
}

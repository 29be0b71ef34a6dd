use wasmspawner_sdk::pod::{Customization, EnvVar, Mount};
use wasmspawner_sdk::{Error, Options, User, hooks};

use crate::RubinPolicy;
use crate::form::{DEBUG, IMAGE, RESET};
use crate::lab::{Storage, env};

impl hooks::BuildPod for RubinPolicy {
    fn customize(&self, user: &User, _: &str, options: &Options) -> Result<Customization, Error> {
        let lab = &self.lab;
        let size = lab.sizes.chosen(user, options)?;
        let home = lab.home.of(&user.name)?;
        let (tmp, tmp_mount) = lab.storage.tmp(size.resources.memory_limit_bytes.unwrap_or_default());

        let mut variables = self.variables(options, &size.label, &home);
        let has_startup = lab.standard.has_startup();
        let mounts: Vec<_> =
            lab.storage.mounts.iter().cloned().chain([tmp_mount]).chain(lab.secrets.mounts()).collect();
        let startup = has_startup.then(Storage::startup_mount);
        let of_all: Vec<_> = mounts.iter().cloned().chain(startup.clone()).collect();
        let secrets = lab.secrets.env();
        let init = |init: &crate::lab::Init| init.of(user, &home, &variables, &size.resources);
        let first = lab.standard.inithome(&lab.storage, &lab.home);
        let last = lab.standard.last(&of_all, &secrets);
        let init_containers = first.iter().chain(&lab.init_containers).chain(&last).map(init).collect();
        for variable in secrets {
            env::set(&mut variables, variable);
        }
        Ok(Customization {
            env: variables,
            annotations: lab.placement.annotations.clone(),
            resources: Some(size.resources.clone()),
            tolerations: lab.placement.tolerations.clone(),
            node_selector: lab.placement.node_selector.clone(),
            volumes: lab
                .storage
                .volumes
                .iter()
                .cloned()
                .chain([tmp])
                .chain(lab.secrets.volume())
                .chain(has_startup.then(|| lab.storage.startup()))
                .collect(),
            mounts: mounts.into_iter().chain(startup.map(Mount::read_only)).collect(),
            init_containers,
            args: Some(lab.start_command.clone()),
            working_dir: Some(home),
            time_limits: lab.time_limits,
            pod_patch: lab.placement.patch.clone(),
            ..Customization::default()
        })
    }
}

impl RubinPolicy {
    /// The variables of a lab that are not secrets. Variables of the configuration replace others. The service adds
    /// `CPU_LIMIT`, `MEM_LIMIT`, `CPU_GUARANTEE`, `MEM_GUARANTEE`, `IMAGE_DIGEST` and `IMAGE_DESCRIPTION`.
    fn variables(&self, options: &Options, size: &str, home: &str) -> Vec<EnvVar> {
        let mut variables = vec![
            EnvVar::literal("CONTAINER_SIZE", size),
            EnvVar::literal("HOME", home),
            EnvVar::literal("JUPYTERLAB_START_COMMAND", env::shell_words(&self.lab.start_command)),
            EnvVar::field("KUBERNETES_NODE_NAME", "spec.nodeName"),
            EnvVar::field("K8S_NODE_NAME", "spec.nodeName"),
        ];
        for (option, name) in [(DEBUG, "DEBUG"), (RESET, "RESET_USER_ENV")] {
            if options.flag(option) {
                variables.push(EnvVar::literal(name, "TRUE"));
            }
        }
        if let Some(tag) = options.text(IMAGE) {
            let image = self.chosen_image(tag).reference;
            variables.push(EnvVar::literal("JUPYTER_IMAGE", &image));
            variables.push(EnvVar::literal("JUPYTER_IMAGE_SPEC", image));
        }
        for variable in &self.lab.env {
            env::set(&mut variables, variable.clone());
        }
        variables
    }
}

use wasmspawner_sdk::pod::Customization;
use wasmspawner_sdk::{Error, Options, Pair, User, hooks};

use crate::{DefaultPolicy, template};

impl hooks::BuildPod for DefaultPolicy {
    fn customize(&self, user: &User, _: &str, options: &Options) -> Result<Customization, Error> {
        let image = self.images.chosen(user, options)?;
        let program = self.images.program(user, options)?;
        let size = self.sizes.chosen(user, "size", options)?.map(|entry| &entry.value);
        let mut tolerations = self.placement.tolerations.clone();
        let mut node_selector = self.placement.node_selector.clone();
        if let Some(size) = size {
            tolerations.extend(size.tolerations.iter().cloned());
            node_selector.extend(size.node_selector.iter().cloned());
        }
        // Arguments of the policy are meant for its own command.
        let args = match program {
            Some(program) if program.command.is_some() || program.args.is_some() => program.args.clone(),
            _ => self.args.clone(),
        };
        let mut lab = Customization {
            image: image.map(|image| image.image.clone()),
            env: self.env.clone(),
            labels: pairs(&self.labels),
            annotations: pairs(&self.annotations),
            resources: size.map(|size| size.resources.clone()),
            tolerations,
            node_selector: pairs(&node_selector),
            affinity: self.placement.affinity,
            volumes: self.storage.volumes.clone(),
            mounts: self.storage.mounts.clone(),
            init_containers: self.init_containers.iter().map(|init| init.0.clone()).collect(),
            command: program.and_then(|program| program.command.clone()).or_else(|| self.command.clone()),
            args,
            working_dir: self.working_dir.clone(),
            time_limits: self.time_limits,
            environment_class: self
                .environments
                .class(user, size.and_then(|size| size.environment_class.as_ref())),
            pod_patch: None,
        };
        template::fill_lab(&mut lab)?;
        self.profiles.chosen(user, options)?.apply(&mut lab, &self.container);
        for extra in &self.extras {
            extra.set(options, &mut lab.env)?;
        }
        Ok(lab)
    }
}

pub(crate) fn pairs(of: &[(String, String)]) -> Vec<Pair> {
    of.iter().map(|(name, value)| Pair::new(name, value)).collect()
}

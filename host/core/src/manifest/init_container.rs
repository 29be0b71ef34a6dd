use k8s_openapi::api::core::v1::{Container, EnvVar as ContainerEnvVar};

use super::{lab_container, resources, volume};
use crate::identity::Identity;
use crate::policy::compose::ValidatedSpawn;
use crate::policy::{EnvValue, EnvVar, InitContainer};

/// A container that ends before the lab starts. It knows whose lab it prepares: from its variables, and from the same
/// `/etc/passwd` and `/etc/group` as the lab's. The security baseline sets its security context.
pub(super) fn build(init: &InitContainer, spawn: &ValidatedSpawn) -> Container {
    let mut variables: Vec<ContainerEnvVar> = identity(&spawn.identity).into_iter().collect();
    // What a policy asks for replaces a variable of the service.
    variables.retain(|var| init.env.iter().all(|asked| asked.name != var.name));
    variables.extend(init.env.iter().map(env));
    let files = volume::user_files().into_iter();
    let mounts = files.filter(|file| init.mounts.iter().all(|asked| asked.path != file.mount_path));
    let words = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
    Container {
        name: init.name.clone(),
        image: Some(init.image.clone()),
        image_pull_policy: Some(spawn.config.image_pull_policy.as_str().to_owned()),
        command: words(&init.command),
        args: words(&init.args),
        env: Some(variables),
        resources: init.resources.as_ref().and_then(resources::requirements),
        volume_mounts: Some(mounts.chain(init.mounts.iter().map(volume::mount)).collect()),
        ..Container::default()
    }
}

/// The variables with which Jupyter's container images are told their user.
fn identity(identity: &Identity) -> [ContainerEnvVar; 5] {
    let gids: Vec<_> = identity.supplemental_gids().iter().map(ToString::to_string).collect();
    [
        ("NB_USER", identity.username.to_string()),
        ("NB_HOME", identity.home()),
        ("NB_UID", identity.uid.to_string()),
        ("NB_GID", identity.gid.to_string()),
        ("NB_SUPPLEMENTAL_GIDS", gids.join(" ")),
    ]
    .map(|(name, value)| ContainerEnvVar {
        name: name.to_owned(),
        value: Some(literal(&value)),
        value_from: None,
    })
}

fn env(var: &EnvVar) -> ContainerEnvVar {
    let (value, value_from) = match &var.value {
        EnvValue::Literal(text) => (Some(literal(text)), None),
        EnvValue::SecretRef(key) => (None, Some(lab_container::secret_key(&key.name, &key.key))),
        EnvValue::FieldRef(path) => (None, Some(lab_container::field(path))),
    };
    ContainerEnvVar { name: var.name.clone(), value, value_from }
}

/// Doubles `$`, so that Kubernetes does not expand `$(NAME)` in a value: a policy may have put an option of the user
/// into it.
fn literal(text: &str) -> String {
    text.replace("$(", "$$(")
}

use k8s_openapi::api::core::v1::{Container, EnvVar as ContainerEnvVar};

use super::{lab_container, resources, volume};
use crate::config::lab::ImagePullPolicy;
use crate::policy::{EnvValue, EnvVar, InitContainer};

/// A container that ends before the lab starts. The security baseline sets its security context.
pub(super) fn build(init: &InitContainer, pull_policy: ImagePullPolicy) -> Container {
    let words = |words: &[String]| (!words.is_empty()).then(|| words.to_vec());
    Container {
        name: init.name.clone(),
        image: Some(init.image.clone()),
        image_pull_policy: Some(pull_policy.as_str().to_owned()),
        command: words(&init.command),
        args: words(&init.args),
        env: (!init.env.is_empty()).then(|| init.env.iter().map(env).collect()),
        resources: init.resources.as_ref().and_then(resources::requirements),
        volume_mounts: (!init.mounts.is_empty()).then(|| init.mounts.iter().map(volume::mount).collect()),
        ..Container::default()
    }
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

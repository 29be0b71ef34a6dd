use k8s_openapi::api::core::v1::{Container, EnvVar as ContainerEnvVar};

use super::{lab_container, resources, volume};
use crate::policy::compose::ValidatedSpawn;
use crate::policy::{EnvValue, EnvVar, InitContainer};

/// Builds a container that ends before the lab starts. The user of the lab is in its variables, and in the same
/// `/etc/passwd` and `/etc/group` as the lab's. The security baseline sets its security context.
pub(super) fn build(init: &InitContainer, spawn: &ValidatedSpawn) -> Container {
    let mut variables: Vec<ContainerEnvVar> = identity(spawn).into_iter().collect();
    // A variable that the policy sets replaces one of the service.
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
        termination_message_policy: Some(lab_container::LAST_LINES_OF_LOG.to_owned()),
        resources: init.resources.as_ref().and_then(resources::requirements),
        volume_mounts: Some(mounts.chain(init.mounts.iter().map(volume::mount)).collect()),
        ..Container::default()
    }
}

/// Returns the variables from which Jupyter's container images learn their user.
fn identity(spawn: &ValidatedSpawn) -> [ContainerEnvVar; 5] {
    let identity = &spawn.identity;
    let gids: Vec<_> = identity.supplemental_gids().iter().map(ToString::to_string).collect();
    [
        ("NB_USER", identity.username.to_string()),
        ("NB_HOME", spawn.home()),
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

/// Doubles each `$`, so that Kubernetes expands nothing in a value: a policy may have put an option of the user into
/// it. Kubernetes replaces `$$` by `$` wherever it occurs.
fn literal(text: &str) -> String {
    text.replace('$', "$$")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Expands a text as Kubernetes does (`Expand` of `third_party/forked/golang/expansion`). Here every variable is
    /// known, and its value is `<secret>`.
    fn expanded(text: &str) -> String {
        let (mut result, mut rest) = (String::new(), text);
        while let Some((before, after)) = rest.split_once('$') {
            result += before;
            rest = if let Some(after) = after.strip_prefix('$') {
                result.push('$');
                after
            } else if let Some((_, after)) = after.strip_prefix('(').and_then(|name| name.split_once(')')) {
                result += "<secret>";
                after
            } else {
                result.push('$');
                after
            };
        }
        result + rest
    }

    proptest! {
        #[test]
        fn kubernetes_makes_the_same_text_of_a_literal_value(text in "[$()A{} ]{0,12}") {
            prop_assert_eq!(expanded(&literal(&text)), text);
        }
    }

    #[test]
    fn kubernetes_would_expand_what_is_not_doubled() {
        assert_eq!(expanded("a $$$(PW) b"), "a $<secret> b");
        assert_eq!(expanded("a $$(PW) b $5 $"), "a $(PW) b $5 $");
    }
}

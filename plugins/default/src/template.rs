//! Templates in the configuration. The service itself expands those in names and paths of storage.

use wasmspawner_sdk::pod::{Customization, EnvValue, EnvVar, Mount, VolumeSource};
use wasmspawner_sdk::{Error, Section, host};

use crate::placement;

/// Reads names with templates as values.
pub(crate) fn pairs(config: &mut Section<'_>, key: &'static str) -> Vec<(String, String)> {
    let pairs = placement::pairs(config, key);
    check(config, key, pairs.iter().map(|(_, text)| text));
    pairs
}

/// Reads a list of templates; empty if absent.
pub(crate) fn list(config: &mut Section<'_>, key: &'static str) -> Vec<String> {
    let texts: Vec<String> = config.or_default(key);
    check(config, key, &texts);
    texts
}

/// Reads a required template.
pub(crate) fn required(config: &mut Section<'_>, key: &'static str) -> String {
    let text: String = config.required(key);
    config.check_template(key, &text);
    text
}

pub(crate) fn check<'a>(config: &Section<'_>, key: &str, texts: impl IntoIterator<Item = &'a String>) {
    for text in texts {
        config.check_template(key, text);
    }
}

/// Expands the lab's fields.
pub(crate) fn fill(text: &mut String) -> Result<(), Error> {
    if text.contains(['{', '}']) {
        *text = host::expand(text).map_err(Error::Internal)?;
    }
    Ok(())
}

/// Expands the lab's fields wherever the operator may write templates. Call it before values of users are added.
pub(crate) fn fill_lab(lab: &mut Customization) -> Result<(), Error> {
    fill_env(&mut lab.env)?;
    fill_mounts(&mut lab.mounts)?;
    for pair in lab.labels.iter_mut().chain(&mut lab.annotations) {
        fill(&mut pair.value)?;
    }
    for volume in &mut lab.volumes {
        let VolumeSource::Claim(claim) = &mut volume.source else { continue };
        if let Some(create) = &mut claim.create {
            create
                .labels
                .iter_mut()
                .chain(&mut create.annotations)
                .try_for_each(|pair| fill(&mut pair.value))?;
        }
    }
    lab.working_dir.as_mut().map_or(Ok(()), fill)?;
    for init in &mut lab.init_containers {
        fill(&mut init.image)?;
        init.command.iter_mut().chain(&mut init.args).try_for_each(fill)?;
        fill_env(&mut init.env)?;
        fill_mounts(&mut init.mounts)?;
    }
    Ok(())
}

fn fill_env(env: &mut [EnvVar]) -> Result<(), Error> {
    for variable in env {
        if let EnvValue::Literal(text) = &mut variable.value {
            fill(text)?;
        }
    }
    Ok(())
}

fn fill_mounts(mounts: &mut [Mount]) -> Result<(), Error> {
    mounts.iter_mut().try_for_each(|mount| fill(&mut mount.path))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wasmspawner_sdk::User;
    use wasmspawner_sdk::pod::{Customization, EnvValue, VolumeSource};
    use wasmspawner_sdk::testing::TestKit;

    use crate::DefaultPolicy;

    fn site() -> Value {
        json!({
            "env": {"WHO": "{username}", "JSON": "{{\"a\": 1}}", "TOKEN": {"secret": "{username}", "key": "k"}},
            "labels": {"team": "{username}"},
            "annotations": {"note": "of {username} in {namespace}"},
            "node_selector": {"pool": "{username}"},
            "working_dir": "/home/{username}",
            "volumes": [
                {"name": "home", "nfs": {"server": "nfs", "path": "/export/{username}"}},
                {"name": "work", "claim": {
                    "name": "{pvc_name}", "create": {"storage": "1Gi", "labels": {"of": "{username}"}}
                }}
            ],
            "mounts": [{"volume": "home", "path": "/home/{username}", "sub_path": "{username}"}],
            "init_containers": [{
                "name": "make-home", "image": "site/{username}", "command": ["sh", "-c"],
                "args": ["mkdir -p /homes/{username} && echo ${{HOME}}"], "env": {"WHO": "{username}"},
                "mounts": [{"volume": "home", "path": "/homes/{username}"}]
            }],
            "options": [
                {"name": "debug", "env": {"LOG": "/log/{username}"}},
                {"name": "note", "kind": "text", "env": "NOTE"}
            ]
        })
    }

    fn env<'a>(pod: &'a Customization, name: &str) -> &'a EnvValue {
        &pod.env.iter().find(|variable| variable.name == name).unwrap().value
    }

    #[test]
    fn templates_of_the_operator_are_expanded_and_values_of_users_are_not() {
        let site = TestKit::<DefaultPolicy>::new(&site()).unwrap();
        let typed = "{username} {{x}} {";
        let pod = site.customize(&User::named("ada"), &json!({"debug": true, "note": typed})).unwrap();
        let literal = |text: &str| EnvValue::Literal(text.into());
        assert_eq!(*env(&pod, "WHO"), literal("ada"));
        assert_eq!(*env(&pod, "JSON"), literal("{\"a\": 1}"));
        assert_eq!(*env(&pod, "LOG"), literal("/log/ada"));
        assert_eq!(*env(&pod, "NOTE"), literal(typed));
        assert_eq!(pod.labels[0].value, "ada");
        assert_eq!(pod.annotations[0].value, "of ada in ns-ada");
        assert_eq!(pod.node_selector[0].value, "{username}", "not a template");
        assert_eq!(pod.working_dir.as_deref(), Some("/home/ada"));
        assert_eq!(pod.mounts[0].path, "/home/ada");
        assert_eq!(pod.mounts[0].sub_path.as_deref(), Some("{username}"), "the service's part");
        let VolumeSource::Claim(claim) = &pod.volumes[1].source else { panic!("a claim") };
        assert_eq!(claim.claim_name, "{pvc_name}", "the service's part");
        assert_eq!(claim.create.as_ref().unwrap().labels[0].value, "ada");
        let init = &pod.init_containers[0];
        assert_eq!((init.image.as_str(), init.mounts[0].path.as_str()), ("site/ada", "/homes/ada"));
        assert_eq!(init.args, ["mkdir -p /homes/ada && echo ${HOME}"]);
        assert_eq!(init.env[0].value, literal("ada"));
    }

    #[test]
    fn an_unknown_template_field_is_refused_at_load() {
        let wrong: Value =
            serde_json::from_str(&site().to_string().replace("{username}", "{usrname}")).unwrap();
        let problems = TestKit::<DefaultPolicy>::new(&wrong).err().unwrap();
        let mut fields: Vec<_> = problems.iter().map(|problem| problem.field.as_str()).collect();
        fields.dedup();
        assert_eq!(
            fields,
            [
                "/volumes/0/nfs/path",
                "/volumes/1/claim/create/labels",
                "/mounts/0/path",
                "/mounts/0/sub_path",
                "/init_containers/0/image",
                "/init_containers/0/args",
                "/init_containers/0/env",
                "/init_containers/0/mounts/0/path",
                "/options/0/env",
                "/env",
                "/labels",
                "/annotations",
                "/working_dir",
            ]
        );
        assert!(
            problems[0]
                .message
                .starts_with("`/export/{usrname}` is not a valid template: unknown field {usrname}")
        );
    }
}

use std::collections::BTreeMap;

use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::EnvVar;

use crate::duration;

/// Variables that the service, JupyterHub or this policy sets.
const RESERVED: [&str; 15] = [
    "ACCESS_TOKEN",
    "CONTAINER_SIZE",
    "CPU_GUARANTEE",
    "CPU_LIMIT",
    "DEBUG",
    "IMAGE_DESCRIPTION",
    "IMAGE_DIGEST",
    "JPY_API_TOKEN",
    "JUPYTER_IMAGE",
    "JUPYTER_IMAGE_SPEC",
    "KUBERNETES_NODE_NAME",
    "MEM_GUARANTEE",
    "MEM_LIMIT",
    "NUBLADO_TOKEN",
    "RESET_USER_ENV",
];

/// The directory in which images of the site have their own configuration of JupyterLab.
const CONFIG_DIR: &str = "/opt/lsst/software/jupyterlab";

/// The directory in which Nublado mounts files about the running lab.
const RUNTIME_DIR: &str = "/etc/nublado";

/// Reads the variables that are the same in all labs. Those of `env` come last, and therefore replace others. Their
/// values are not templates, as in Nublado.
pub(super) fn read(lab: &mut Section<'_>, (config_dir, runtime_dir): (&str, &str)) -> Vec<EnvVar> {
    let activity = lab.parsed("activityInterval", duration::seconds).unwrap_or(3600);
    let configured: BTreeMap<String, String> = lab.or_default("env");
    for name in configured.keys().filter(|name| is_reserved(name)) {
        lab.problem("env", format!("`{name}` is set by JupyterHub, the service or this policy; remove it"));
    }
    let mut env = vec![
        EnvVar::literal("JUPYTERHUB_ACTIVITY_INTERVAL", activity.to_string()),
        EnvVar::literal("JUPYTERLAB_CONFIG_DIR", config_dir),
        EnvVar::literal("NUBLADO_RUNTIME_MOUNTS_DIR", runtime_dir),
    ];
    for (name, value) in configured {
        set(&mut env, EnvVar::literal(name, value));
    }
    env
}

/// Reads the directory of JupyterLab's configuration in the site's images, and that of files about the running lab.
pub(super) fn directories(lab: &mut Section<'_>) -> (String, String) {
    let mut read = |key, default: &str| lab.optional(key).unwrap_or_else(|| default.to_owned());
    (read("jupyterlabConfigDir", CONFIG_DIR), read("runtimeMountsDir", RUNTIME_DIR))
}

/// Sets a variable, replacing an earlier value.
pub(crate) fn set(env: &mut Vec<EnvVar>, variable: EnvVar) {
    env.retain(|before| before.name != variable.name);
    env.push(variable);
}

/// Reads the arguments with which the image starts JupyterLab.
pub(super) fn start_command(lab: &mut Section<'_>) -> Vec<String> {
    let command: Option<Vec<String>> = lab.optional("labStartCommand");
    if command.as_ref().is_some_and(Vec::is_empty) {
        lab.problem("labStartCommand", "is empty; leave it out for the usual one");
    }
    command.unwrap_or_else(|| vec![format!("{CONFIG_DIR}/runlab.sh")])
}

fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name) || name.starts_with("JUPYTERHUB_")
}

/// Quotes the words for a shell, because the script that starts JupyterLab receives them as one text.
pub(crate) fn shell_words(words: &[String]) -> String {
    let plain = |char: char| char.is_ascii_alphanumeric() || "@%+=:,./-_".contains(char);
    let quoted = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', r#"'"'"'"#))
        }
    };
    words.iter().map(quoted).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        let words = ["/bin/run.sh", "a b", "it's", ""].map(String::from);
        assert_eq!(shell_words(&words), r#"/bin/run.sh 'a b' 'it'"'"'s' ''"#);
    }
}

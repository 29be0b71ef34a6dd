//! The mapping of images to local commands.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use k8s_openapi::api::core::v1::Container;

use super::env::expand;

/// The local command that stands for an image on this machine.
///
/// Texts may contain `{mount:/path}` (the directory that is mounted at `/path`, or the path itself if nothing is
/// mounted there), `{home}` (the container's home directory), `{pod_ip}` and `{port}` (its first port).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ImageCommand {
    /// The pattern of image references that this mapping applies to; `*` stands for any characters. The first match of
    /// the list wins.
    pub pattern: String,
    /// The names of the containers that this mapping applies to; empty for all.
    pub containers: Vec<String>,
    /// The image's entrypoint.
    pub command: Vec<String>,
    /// The image's default arguments.
    pub args: Vec<String>,
    /// The image's environment; the pod's wins.
    pub env: BTreeMap<String, String>,
    /// The image's working directory; the pod's wins. Default: the home directory.
    pub working_dir: Option<PathBuf>,
    /// The treatment of the pod's own command and arguments.
    pub pod_command: PodCommand,
}

/// The treatment of the command and arguments in the pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PodCommand {
    /// As in Kubernetes: the pod's command replaces the image's command and arguments, the pod's arguments the image's.
    #[default]
    Wins,
    /// The pod's command and arguments are not used, because its paths mean nothing on this machine.
    Ignored,
}

/// The state of an image on the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImageState {
    Present,
    Pulls { after: Duration },
    Unavailable { after: Duration, message: String },
    Invalid,
}

/// Finds the mapping of a container's image. The error tells how to add one.
pub(crate) fn find<'a>(
    mappings: &'a [ImageCommand],
    container: &Container,
) -> Result<&'a ImageCommand, String> {
    let image = container.image.as_deref().unwrap_or_default();
    let holds_for = |mapping: &ImageCommand| {
        mapping.containers.is_empty() || mapping.containers.contains(&container.name)
    };
    mappings.iter().find(|mapping| holds_for(mapping) && glob(&mapping.pattern, image)).ok_or_else(|| {
        format!(
            "no local command is configured for image {image:?} in the container {:?}: add an entry with `match: \
             {image:?}` and a `command` to the kubelet's images",
            container.name
        )
    })
}

/// Matches a text against a pattern. `*` matches any run of characters, and every other character matches itself.
fn glob(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(text) = text.strip_prefix(first) else { return false };
    (0..=text.len()).any(|start| text.get(start..).is_some_and(|text| glob(rest, text)))
}

/// Returns the program and the arguments of a container, by Kubernetes' table of command, args, entrypoint and cmd.
///
/// `placeholder` resolves `{...}` of the mapping. The result is empty if neither the pod nor the mapping names a
/// program.
pub(crate) fn command_line(
    mapping: &ImageCommand,
    container: &Container,
    env: &BTreeMap<String, String>,
    placeholder: impl Fn(&str) -> Option<String>,
) -> Vec<String> {
    let own = |words: &[String]| words.iter().map(|word| fill(word, &placeholder)).collect::<Vec<_>>();
    let given = |words: &Option<Vec<String>>| {
        let words =
            words.as_ref().filter(|words| !words.is_empty() && mapping.pod_command == PodCommand::Wins)?;
        let expanded = words.iter().map(|word| expand(word, |name| env.get(name).map(String::as_str)));
        Some(expanded.collect::<Vec<_>>())
    };
    match (given(&container.command), given(&container.args)) {
        (Some(command), args) => [command, args.unwrap_or_default()].concat(),
        (None, Some(args)) => [own(&mapping.command), args].concat(),
        (None, None) => [own(&mapping.command), own(&mapping.args)].concat(),
    }
}

/// Replaces the known placeholders; other braces stay.
pub(crate) fn fill(text: &str, placeholder: impl Fn(&str) -> Option<String>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        out.push_str(&rest[..open]);
        let inner = &rest[open + 1..];
        let known = inner.split_once('}').and_then(|(name, tail)| Some((placeholder(name)?, tail)));
        if let Some((value, tail)) = known {
            out.push_str(&value);
            rest = tail;
        } else {
            out.push('{');
            rest = inner;
        }
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_star_matches_any_characters() {
        for (pattern, image, expect) in [
            ("*", "anything:1", true),
            ("lab:1", "lab:12", false),
            ("*/lab:*", "registry.example/team/lab:12", true),
            ("*/lab:*", "lab:12", false),
            ("a*a", "a", false),
            ("a*b*c", "aXbYc", true),
            ("", "lab", false),
        ] {
            assert_eq!(glob(pattern, image), expect, "{pattern} {image}");
        }
    }

    #[test]
    fn an_entry_can_hold_for_some_containers_only() {
        let mapping = |program: &str, containers: &[&str]| ImageCommand {
            pattern: "*".into(),
            containers: containers.iter().map(|name| (*name).to_owned()).collect(),
            command: vec![program.into()],
            ..ImageCommand::default()
        };
        let mappings = [mapping("lab", &["notebook"]), mapping("kernel", &["kernel", "other"])];
        let found = |name: &str| {
            let container = serde_json::from_value(json!({ "name": name, "image": "lab:1" })).unwrap();
            find(&mappings, &container).map(|mapping| mapping.command[0].clone())
        };
        assert_eq!(found("notebook").unwrap(), "lab");
        assert_eq!(found("kernel").unwrap(), "kernel");
        assert!(found("sidecar").unwrap_err().contains("in the container \"sidecar\""));
    }

    #[test]
    fn command_and_arguments_follow_the_table_of_kubernetes() {
        use PodCommand::{Ignored, Wins};
        let image = "jupyter --ip=127.101.0.2 lab /s/home/{keep}";
        for (pod_command, container, expect) in [
            (Wins, json!({}), image),
            (Wins, json!({"args": ["$(USER)", "{pod_ip}"]}), "jupyter --ip=127.101.0.2 alice {pod_ip}"),
            (Wins, json!({"command": ["sh"]}), "sh"),
            (Wins, json!({"command": ["sh"], "args": ["-c", "x"]}), "sh -c x"),
            (Ignored, json!({"command": ["sh"], "args": ["-c"]}), image),
        ] {
            let mapping = ImageCommand {
                command: vec!["jupyter".into(), "--ip={pod_ip}".into()],
                args: vec!["lab".into(), "{mount:/home/x}/{keep}".into()],
                pod_command,
                ..ImageCommand::default()
            };
            let placeholder = |name: &str| match name {
                "pod_ip" => Some("127.101.0.2".to_owned()),
                "mount:/home/x" => Some("/s/home".to_owned()),
                _ => None,
            };
            let env = [("USER".to_owned(), "alice".to_owned())].into();
            let mut named = container.clone();
            named["name"] = json!("n");
            let line = command_line(&mapping, &serde_json::from_value(named).unwrap(), &env, placeholder);
            assert_eq!(line.join(" "), expect, "{pod_command:?} {container}");
        }
    }
}

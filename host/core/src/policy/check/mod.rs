//! Validates the answers of policies: every string that becomes part of a Kubernetes object must be valid there.

mod containers;
mod env;
mod findings;
mod lab_files;
mod lab_server;
mod metadata;
mod resources;
mod scheduling;
mod volumes;

pub use lab_files::check_lab_files;
pub use lab_server::check_lab_server;

use findings::Findings;

use super::{Customization, FieldError, Image, pod_patch};
use crate::config::EnvironmentChoice;
use crate::values::digest::Digest;

/// Returns all errors in an answer, field by field. Rules about several answers together, such as that a mount's volume
/// exists, are checked when the answers are merged.
pub fn check_customization(asked: &Customization) -> Vec<FieldError> {
    let mut found = Findings::default();
    if let Some(asked) = &asked.image {
        found.at("image", |found| image(asked, found));
    }
    env::check(&asked.env, &mut found);
    metadata::labels(&asked.labels, &mut found);
    metadata::annotations(&asked.annotations, &mut found);
    metadata::selector("node_selector", &asked.node_selector, &mut found);
    if let Some(asked) = &asked.resources {
        found.at("resources", |found| resources::check(asked, found));
    }
    scheduling::tolerations(&asked.tolerations, &mut found);
    volumes::volumes(&asked.volumes, &mut found);
    volumes::mounts(&asked.mounts, &mut found);
    containers::init_containers(&asked.init_containers, &mut found);
    containers::command(asked, &mut found);
    if let Some(limits) = &asked.time_limits {
        for (field, seconds) in
            [("spawn_seconds", limits.spawn_seconds), ("delete_seconds", limits.delete_seconds)]
        {
            found.refuse_if(seconds == Some(0), &format!("time_limits.{field}"), "must be at least 1");
        }
    }
    if let Some(class) = &asked.environment_class {
        found.parsed("environment_class", EnvironmentChoice::parse(class));
    }
    if let Some(Err(problem)) = asked.pod_patch.as_deref().map(pod_patch::parse) {
        found.add("pod_patch", problem);
    }
    found.into_errors()
}

fn image(image: &Image, found: &mut Findings) {
    image_reference("reference", &image.reference, found);
    if let Some(digest) = &image.digest {
        let wrong = digest.parse::<Digest>().is_err();
        found.refuse_if(wrong, "digest", "must be `sha256:` and 64 hexadecimal digits in lower case");
    }
    let description = image.description.as_deref().unwrap_or_default();
    found.refuse_if(description.len() > 1024, "description", "is longer than 1024 bytes");
    found.refuse_if(description.chars().any(char::is_control), "description", "contains a control character");
}

/// Refuses a text that cannot be an image reference. The kubelet checks the exact syntax.
fn image_reference(field: &str, reference: &str, found: &mut Findings) {
    let good = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'.' | b'_' | b'-' | b'/' | b':' | b'@');
    let shaped = reference.starts_with(|c: char| c.is_ascii_alphanumeric()) && reference.bytes().all(good);
    found.refuse_if(!shaped, field, "is not an image reference such as `registry/repository:tag`");
    found.refuse_if(reference.len() > 512, field, "is longer than 512 bytes");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One case per line: the answer, the field at which it must be refused, and a word of the message.
    const REFUSED: &[(&str, &str, &str)] = &[
        ("image: {reference: ''}", "image.reference", "image reference"),
        ("image: {reference: 'lab:1 --privileged'}", "image.reference", "image reference"),
        ("image: {reference: lab, digest: 'sha256:XY'}", "image.digest", "64 hexadecimal"),
        ("env: [{name: 1A, value: {literal: x}}]", "env[0].name", "environment variable"),
        ("env: [{name: A, value: {literal: x}}, {name: A, value: {literal: y}}]", "env[1].name", "twice"),
        ("env: [{name: A, value: {literal: \"a\\0b\"}}]", "env[0].value", "NUL"),
        ("env: [{name: A, value: {field_ref: spec.secret}}]", "env[0].value", "status.podIP"),
        ("env: [{name: A, value: {secret_ref: {name: A_B, key: k}}}]", "env[0].value.name", "object name"),
        ("labels: [{name: a/b/c, value: x}]", "labels[0].name", "label key"),
        ("labels: [{name: a, value: 'a b'}]", "labels[0].value", "label value"),
        ("labels: [{name: wasmspawner.io/user, value: eve}]", "labels[0].name", "the service's own"),
        (
            "annotations: [{name: wasmspawner.io/username, value: eve}]",
            "annotations[0].name",
            "the service's own",
        ),
        ("annotations: [{name: a, value: x}, {name: a, value: x}]", "annotations[1].name", "twice"),
        (
            "resources: {cpu_limit_millis: 100, cpu_request_millis: 200}",
            "resources.cpu_request_millis",
            "limit",
        ),
        ("resources: {extended: [[gpu, 1]]}", "resources.extended[0]", "nvidia.com/gpu"),
        ("resources: {extended: [[kubernetes.io/x, 1]]}", "resources.extended[0]", "kubernetes.io"),
        ("tolerations: [{operator: equal}]", "tolerations[0].key", "equal"),
        ("tolerations: [{operator: exists, value: x}]", "tolerations[0].value", "exists"),
        ("tolerations: [{operator: exists, seconds: 5}]", "tolerations[0].seconds", "no_execute"),
        ("volumes: [{name: A, source: {empty_dir: {}}}]", "volumes[0].name", "name"),
        (
            "volumes: [{name: wasmspawner-nss, source: {empty_dir: {}}}]",
            "volumes[0].name",
            "the service's own",
        ),
        (
            "volumes: [{name: a, source: {nfs: {server: '', path: /x}}}]",
            "volumes[0].source.nfs.server",
            "empty",
        ),
        (
            "volumes: [{name: a, source: {nfs: {server: s, path: x}}}]",
            "volumes[0].source.nfs.path",
            "absolute",
        ),
        ("volumes: [{name: a, source: {host_path: /a/../etc}}]", "volumes[0].source.host_path", "absolute"),
        (
            "volumes: [{name: a, source: {config_map: {name: c, mode: 999}}}]",
            "volumes[0].source.config_map.mode",
            "777",
        ),
        (
            "volumes: [{name: a, source: {secret: {name: c, items: [[k, ../x]]}}}]",
            "volumes[0].source.secret.items[0]",
            "relative",
        ),
        ("mounts: [{volume: a, path: data}]", "mounts[0].path", "absolute"),
        ("mounts: [{volume: a, path: /etc/passwd}]", "mounts[0].path", "the service's own"),
        ("mounts: [{volume: a, path: /d, sub_path: ../x}]", "mounts[0].sub_path", "relative"),
        ("init_containers: [{name: a, image: ''}]", "init_containers[0].image", "image reference"),
        ("init_containers: [{name: a, image: i}, {name: a, image: i}]", "init_containers[1].name", "twice"),
        (
            "init_containers: [{name: a, image: i, env: [{name: '', value: {literal: x}}]}]",
            "init_containers[0].env[0].name",
            "empty",
        ),
        ("command: []", "command", "empty"),
        ("working_dir: home", "working_dir", "absolute"),
        ("time_limits: {spawn_seconds: 0}", "time_limits.spawn_seconds", "at least 1"),
        ("environment_class: 'A B'", "environment_class", "name"),
        ("pod_patch: '['", "pod_patch", "JSON"),
    ];

    #[test]
    fn values_that_kubernetes_would_refuse_are_refused_by_field() {
        for (answer, field, says) in REFUSED {
            let asked: Customization = serde_saphyr::from_str(answer).unwrap();
            let errors = check_customization(&asked);
            let hit = errors.iter().any(|error| error.field == *field && error.message.contains(says));
            assert!(hit, "{answer}\nexpected {field}: ...{says}...\ngot {errors:?}");
        }
    }

    #[test]
    fn an_answer_with_every_field_passes() {
        let asked: Customization = serde_saphyr::from_str(include_str!("full.yaml")).unwrap();
        assert_eq!(check_customization(&asked), []);
    }
}

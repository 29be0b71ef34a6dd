//! Checks the parts of its workload that a policy lets a lab see.

use k8s_openapi::api::core::v1::{Container, PodTemplateSpec, Volume};

use super::SpawnRejected;
use crate::config::grants::{Grant, Grants, Need};
use crate::policy::workload_access::kinds;
use crate::policy::{Author, FieldError, WorkloadAccess};
use crate::values::path;
use crate::workload::LabMark;

/// Checks that the workload has the parts that the policy of this name lets the lab see, and that the operator has
/// granted the policy the Secrets and the paths of the node among them.
pub fn check_access(
    access: &WorkloadAccess,
    template: &PodTemplateSpec,
    policy: &str,
    grants: &Grants,
) -> Result<(), SpawnRejected> {
    let author = Author::Policy(policy.to_owned());
    let mut errors = Vec::new();
    let mut needs = Vec::new();
    for (at, wanted) in access.volumes.iter().enumerate() {
        let field = |name: &str| format!("volumes[{at}].{name}");
        match volume(template, &wanted.volume) {
            None => {
                let problem = format!("the workload has no volume `{}`", wanted.volume);
                errors.push(FieldError::new(field("volume"), problem));
            }
            Some(found) => match kind_for_none(found) {
                Some(kind) => {
                    let problem =
                        format!("the volume `{}` is of the kind `{kind}`, which no lab gets", wanted.volume);
                    errors.push(FieldError::new(field("volume"), problem));
                }
                None => needs.extend(of_volume(&field("volume"), found)),
            },
        }
        if !path::is_absolute(&wanted.path) {
            errors.push(FieldError::new(
                field("path"),
                "must be an absolute path without `..` and `:`".to_owned(),
            ));
        }
        if wanted.sub_path.as_deref().is_some_and(|sub_path| !path::is_relative(sub_path)) {
            errors.push(FieldError::new(
                field("sub_path"),
                "must be a relative path without `..` and `:`".to_owned(),
            ));
        }
        let own = ["/etc/passwd", "/etc/group", "/var/run/secrets/kubernetes.io/serviceaccount"];
        if own.contains(&wanted.path.trim_end_matches('/')) {
            errors.push(FieldError::new(field("path"), "is the service's own".to_owned()));
        }
        if access.volumes.iter().take(at).any(|other| other.path == wanted.path) {
            errors.push(FieldError::new(field("path"), "is given twice".to_owned()));
        }
    }
    if let Some(name) = &access.environment_of {
        match container(template, name) {
            None => {
                let problem = format!("the workload has no container `{name}`");
                errors.push(FieldError::new("environment_of".to_owned(), problem));
            }
            Some(found) => needs.extend(of_environment(found)),
        }
    }
    let violations =
        needs.into_iter().filter(|need| !grants.cover(need)).map(|need| need.violated_by(&author));
    errors
        .extend(violations.map(|violation| FieldError::new(violation.field.clone(), violation.to_string())));
    if errors.is_empty() { Ok(()) } else { Err(SpawnRejected::by(&author, errors)) }
}

/// Finds the volume of a workload with this name.
fn volume<'a>(template: &'a PodTemplateSpec, name: &str) -> Option<&'a Volume> {
    let volumes = template.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.into_iter().find(|volume| volume.name == name && !LabMark::is_of_a_lab(name))
}

/// Finds the container of a workload with this name.
fn container<'a>(template: &'a PodTemplateSpec, name: &str) -> Option<&'a Container> {
    let containers = template.spec.iter().flat_map(|spec| &spec.containers);
    containers.into_iter().find(|container| container.name == name && !LabMark::is_of_a_lab(name))
}

/// The kinds of volumes of a workload that a lab may mount. Any other kind, including kinds that Kubernetes adds later,
/// may give the lab an identity of the workload (`serviceAccountToken`, `podCertificate`, many drivers of `csi`) or
/// something that only the workload should reach.
const KINDS: [&str; 9] = [
    "configMap",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "hostPath",
    "nfs",
    "persistentVolumeClaim",
    "projected",
    "secret",
];

/// The kinds of sources of a projected volume that a lab may mount, for the same reasons.
const PROJECTED: [&str; 3] = ["configMap", "downwardAPI", "secret"];

/// Returns the kind of the volume, or of one of its sources, if no lab may mount it.
fn kind_for_none(volume: &Volume) -> Option<String> {
    let projected = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    let sources = projected.map(|source| (kinds(source), &PROJECTED[..]));
    std::iter::once((kinds(volume), &KINDS[..]))
        .chain(sources)
        .find_map(|(kinds, allowed)| kinds.into_iter().find(|kind| !allowed.contains(&kind.as_str())))
}

fn of_volume(field: &str, volume: &Volume) -> Vec<Need> {
    let need = |grant, wanted: &str| Need { field: field.to_owned(), grant, wanted: Some(wanted.to_owned()) };
    let secret = volume.secret.iter().filter_map(|secret| secret.secret_name.as_deref());
    let projected = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
    let projected = projected.filter_map(|source| source.secret.as_ref()).map(|secret| secret.name.as_str());
    let secrets = secret.chain(projected).map(|name| need(Grant::Secrets, name));
    let of_node = volume.host_path.iter().map(|source| need(Grant::HostPath, &source.path));
    secrets.chain(of_node).collect()
}

fn of_environment(container: &Container) -> Vec<Need> {
    let variables = container.env.iter().flatten().filter_map(|variable| variable.value_from.as_ref());
    let keys = variables.filter_map(|source| source.secret_key_ref.as_ref()).map(|key| key.name.as_str());
    let whole = container.env_from.iter().flatten().filter_map(|source| source.secret_ref.as_ref());
    keys.chain(whole.map(|secret| secret.name.as_str()))
        .map(|name| Need {
            field: "environment_of".to_owned(),
            grant: Grant::Secrets,
            wanted: Some(name.to_owned()),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEMPLATE: &str = "
spec:
  containers:
    - name: web
      env: [{name: MODE, value: fast}, {name: PASSWORD, valueFrom: {secretKeyRef: {name: db, key: password}}}]
      envFrom: [{secretRef: {name: more}}]
    - {name: plain, env: [{name: MODE, value: fast}]}
    - {name: lab-0123456789}
  volumes:
    - {name: files, persistentVolumeClaim: {claimName: files}}
    - {name: key, secret: {secretName: tls}}
    - {name: node, hostPath: {path: /data/x}}
    - {name: all, projected: {sources: [{secret: {name: tls}}, {configMap: {name: a}}]}}
    - {name: identity, projected: {sources: [{serviceAccountToken: {path: token}}]}}
    - {name: certificate, projected: {sources: [{configMap: {name: a}}, {podCertificate: {signerName: x, keyType: ED25519}}]}}
    - {name: driver, csi: {driver: secrets-store.csi.k8s.io}}
    - {name: lab-0123456789-nss, configMap: {name: nss}}
";

    fn told(access: &str, grants: &str) -> String {
        let template = serde_saphyr::from_str(TEMPLATE).unwrap();
        let access: WorkloadAccess = serde_saphyr::from_str(access).unwrap();
        let grants = serde_saphyr::from_str(grants).unwrap();
        match check_access(&access, &template, "site", &grants) {
            Ok(()) => "allowed".to_owned(),
            Err(rejected) => rejected.details.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "),
        }
    }

    #[test]
    fn a_lab_sees_of_a_workload_what_is_granted_and_nothing_else() {
        let all = "{secrets: [tls, db, more], host-path: [/data]}";
        let told: Vec<_> = [
            ("{volumes: [{volume: files, path: /srv}], environment_of: plain}", "{}"),
            ("{volumes: [{volume: key, path: /a}, {volume: all, path: /b}, {volume: node, path: /c}]}", "{}"),
            ("{volumes: [{volume: key, path: /a}, {volume: all, path: /b}, {volume: node, path: /c}]}", all),
            ("{environment_of: web}", "{secrets: [db]}"),
            ("{environment_of: web}", all),
            ("{volumes: [{volume: identity, path: /var/run/token}]}", all),
            ("{volumes: [{volume: certificate, path: /a}, {volume: driver, path: /b}]}", all),
            ("{volumes: [{volume: lab-0123456789-nss, path: /a}], environment_of: lab-0123456789}", all),
            ("{volumes: [{volume: files, path: a/b}, {volume: files, path: /x, sub_path: ../y}]}", all),
            ("{volumes: [{volume: files, path: /x}, {volume: gone, path: /x}]}", all),
            ("{volumes: [{volume: files, path: /var/run/secrets/kubernetes.io/serviceaccount/}]}", all),
        ]
        .iter()
        .map(|(access, grants)| told(access, grants))
        .collect();
        insta::assert_snapshot!(told.join("\n"));
    }
}

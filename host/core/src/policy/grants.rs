//! Finds the settings in an answer that need a grant, and checks that its policy has the grant.

use super::lifted::LiftRules;
use super::{
    ChainAnswer, ClaimSource, Customization, EnvValue, EnvVar, Pair, SecurityProfile, VolumeSource, pod_patch,
};
use crate::config::grants::{Grant, GrantViolation, Need};

/// Checks a policy's answer against its grants, and returns the grants that it used. `lifts` decides about the security
/// baseline; `reserved` returns whether the site reserves the environment variable of that name.
pub(crate) fn check(
    answer: &ChainAnswer,
    lifts: LiftRules<'_>,
    reserved: impl Fn(&str) -> bool,
) -> Result<Vec<Need>, Vec<GrantViolation>> {
    let port = answer.server.port.map(|port| Need {
        field: "port".to_owned(),
        grant: Grant::Ports,
        wanted: Some(port.to_string()),
    });
    let (mut granted, mut denied) = (Vec::new(), Vec::new());
    for need in needs(&answer.customization, lifts, reserved).into_iter().chain(port) {
        match lifts.cover(&answer.grants, need) {
            Ok(need) => granted.push(need),
            Err(need) => denied.push(need),
        }
    }
    if denied.is_empty() {
        Ok(granted)
    } else {
        Err(denied.into_iter().map(|need| need.violated_by(&answer.author)).collect())
    }
}

/// Returns every setting in an answer that needs a grant, in the order of the answer's fields.
fn needs(asked: &Customization, lifts: LiftRules<'_>, reserved: impl Fn(&str) -> bool) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |field: String, grant, wanted| needs.push(Need { field, grant, wanted });
    let mut secrets_of = |prefix: &str, env: &[EnvVar]| {
        for (at, var) in env.iter().enumerate() {
            if let EnvValue::SecretRef(key) = &var.value {
                need(format!("{prefix}env[{at}].value.secret_ref"), Grant::Secrets, Some(key.name.clone()));
            }
        }
    };
    secrets_of("", &asked.env);
    for (at, init) in asked.init_containers.iter().enumerate() {
        secrets_of(&format!("init_containers[{at}]."), &init.env);
    }
    for (at, volume) in asked.volumes.iter().enumerate() {
        if let Some((kind, grant, wanted)) = of_source(&volume.source) {
            need(format!("volumes[{at}].source.{kind}"), grant, Some(wanted));
        }
    }
    for (at, init) in asked.init_containers.iter().enumerate() {
        if let Some(grant) = of_profile(init.profile) {
            need(format!("init_containers[{at}].profile"), grant, None);
        }
    }
    if let Some(patch) = &asked.pod_patch {
        let reach = pod_patch::reach(patch);
        // The baseline replaces what other containers ask for.
        let asked: Vec<_> = reach.lifts.into_iter().filter(|(name, _)| name == lifts.container).collect();
        let has_own_grant = |path: &str| {
            path == pod_patch::SERVICE_ACCOUNT || !asked.is_empty() && pod_patch::LIFTS.contains(&path)
        };
        for path in pod_patch::paths(patch).into_iter().filter(|path| !has_own_grant(path)) {
            need("pod_patch".to_owned(), Grant::PodPatch, Some(path));
        }
        for (_, lift) in asked.into_iter().filter(|_| !lifts.is_child) {
            need("pod_patch".to_owned(), Grant::Administrators, Some(lift.to_string()));
        }
        for path in reach.host_paths {
            need("pod_patch".to_owned(), Grant::HostPath, Some(path));
        }
        for name in reach.secrets {
            need("pod_patch".to_owned(), Grant::Secrets, Some(name));
        }
        if let Some(name) = reach.service_account {
            need("pod_patch".to_owned(), Grant::ServiceAccounts, Some(name.into()));
        }
        for key in reach.metadata.into_iter().filter(|key| is_acted_on(key)) {
            need("pod_patch".to_owned(), Grant::Metadata, Some(key));
        }
    }
    let mut acted_on = |prefix: &str, labels: &[Pair], annotations: &[Pair]| {
        for (field, pairs) in [("labels", labels), ("annotations", annotations)] {
            for (at, pair) in pairs.iter().enumerate().filter(|(_, pair)| is_acted_on(&pair.name)) {
                need(format!("{prefix}{field}[{at}].name"), Grant::Metadata, Some(pair.name.clone()));
            }
        }
    };
    acted_on("", &asked.labels, &asked.annotations);
    for (at, volume) in asked.volumes.iter().enumerate() {
        if let VolumeSource::Claim(ClaimSource { create: Some(claim), .. }) = &volume.source {
            acted_on(&format!("volumes[{at}].source.claim.create."), &claim.labels, &claim.annotations);
        }
    }
    for (at, var) in asked.env.iter().enumerate().filter(|(_, var)| reserved(&var.name)) {
        let wanted = Some(var.name.clone());
        needs.push(Need {
            field: format!("env[{at}].name"),
            grant: Grant::EnvPrefixesReservedOverride,
            wanted,
        });
    }
    needs
}

/// Returns the name of a volume source as in an answer, the grant that it needs, and the value that the grant must
/// contain.
pub(super) fn of_source(source: &VolumeSource) -> Option<(&'static str, Grant, String)> {
    match source {
        VolumeSource::Secret(secret) => Some(("secret", Grant::Secrets, secret.name.clone())),
        VolumeSource::HostPath(path) => Some(("host_path", Grant::HostPath, path.clone())),
        _ => None,
    }
}

/// Returns the grant that the profile of an init container needs.
pub(super) fn of_profile(profile: SecurityProfile) -> Option<Grant> {
    match profile {
        SecurityProfile::Restricted => None,
        SecurityProfile::Baseline => Some(Grant::RunAsRootInit),
        SecurityProfile::Privileged => Some(Grant::PrivilegedInit),
    }
}

/// Labels by which the Services and network policies of JupyterHub find their pods: a lab with them would get requests,
/// or pass firewalls, that are meant for the Hub.
const OF_THE_HUB: [&str; 3] = ["app", "component", "release"];

/// True for keys that some other program may act on, such as a service mesh, a network plugin or a cloud. By convention
/// the keys of such programs have a prefix.
fn is_acted_on(key: &str) -> bool {
    key.contains('/') || OF_THE_HUB.contains(&key)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::grants::Grants;
    use crate::policy::{Author, LabServer};

    /// The rules of a lab whose baseline nothing lifts.
    const NO_LIFTS: LiftRules<'_> = LiftRules { container: "notebook", site: None, is_child: false };

    fn answer(asked: &Customization, grants: &Grants) -> ChainAnswer {
        ChainAnswer {
            author: Author::Policy("greedy".to_owned()),
            component: None,
            grants: grants.clone(),
            customization: asked.clone(),
            server: LabServer::default(),
            files: Vec::new(),
        }
    }

    #[test]
    fn another_port_needs_a_grant_for_that_port() {
        let asked = |port| ChainAnswer {
            server: LabServer { port: Some(port), probe: None },
            ..answer(&Customization::default(), &serde_saphyr::from_str("ports: [8787, 9000-9099]").unwrap())
        };
        for port in [8787, 9000, 9099] {
            assert_eq!(check(&asked(port), NO_LIFTS, |_| false).unwrap()[0].grant, Grant::Ports);
        }
        let violations = check(&asked(22), NO_LIFTS, |_| false).unwrap_err();
        assert_eq!(violations[0].to_string(), "policy `greedy`: `port` needs the grant `ports` for `22`");
    }

    #[test]
    fn labels_and_annotations_that_other_programs_act_on_need_a_grant() {
        let asked: Customization = serde_saphyr::from_str(
            r#"
labels: [{name: course, value: a}, {name: app, value: jupyterhub}]
annotations: [{name: note, value: x}, {name: k8s.v1.cni.cncf.io/networks, value: host}]
volumes:
  - name: home
    source:
      claim:
        claim_name: home
        create:
          storage_bytes: 1
          labels: [{name: velero.io/exclude-from-backup, value: "true"}, {name: tier, value: home}]
          annotations: [{name: nfs.io/storage-path, value: ../victim}]
pod_patch: '{"metadata":{"annotations":{"sidecar.istio.io/inject":"false","plain":"x"},"labels":{"component":"hub"}}}'
"#,
        )
        .unwrap();
        let patch = Grants { pod_patch: vec!["metadata".to_owned()], ..Grants::default() };
        let violations = check(&answer(&asked, &patch), NO_LIFTS, |_| false).unwrap_err();
        let wanted: Vec<_> = violations.iter().filter_map(|one| one.wanted.as_deref()).collect();
        let of_pod = ["component", "sidecar.istio.io/inject", "app", "k8s.v1.cni.cncf.io/networks"];
        assert_eq!(wanted, [&of_pod[..], &["velero.io/exclude-from-backup", "nfs.io/storage-path"]].concat());
        assert!(violations.iter().all(|one| one.grant == Grant::Metadata));
        assert_eq!(violations[5].field, "volumes[0].source.claim.create.annotations[0].name");
        let all = ["component", "sidecar.istio.io/", "app", "k8s.v1.cni.cncf.io/", "velero.io/", "nfs.io/"]
            .map(str::to_owned)
            .to_vec();
        assert!(check(&answer(&asked, &Grants { metadata: all, ..patch }), NO_LIFTS, |_| false).is_ok());
    }

    #[test]
    fn an_existing_service_account_needs_a_grant_for_its_name() {
        let asked: Customization =
            serde_saphyr::from_str(r#"pod_patch: '{"spec":{"serviceAccountName":"reader"}}'"#).unwrap();
        let whole_pod = Grants { pod_patch: vec!["spec".to_owned()], ..Grants::default() };
        let violations = check(&answer(&asked, &whole_pod), NO_LIFTS, |_| false).unwrap_err();
        let expected = "policy `greedy`: `pod_patch` needs the grant `service-accounts` for `reader`";
        assert_eq!(violations.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
        for (granted, allowed) in [("[reader]", true), ("[read, reader-2]", false)] {
            let grants: Grants = serde_saphyr::from_str(&format!("service-accounts: {granted}")).unwrap();
            assert_eq!(check(&answer(&asked, &grants), NO_LIFTS, |_| false).is_ok(), allowed, "{granted}");
        }
    }

    const GREEDY: &str = r#"
env:
  - {name: DB, value: {secret_ref: {name: db, key: password}}}
volumes:
  - {name: data, source: {host_path: /data/shared/x}}
  - {name: creds, source: {secret: {name: creds}}}
init_containers:
  - {name: setup, image: busybox, profile: privileged}
  - {name: chown, image: busybox, profile: baseline}
pod_patch: '{"spec":{"hostAliases":[{"ip":"10.0.0.1","hostnames":["db"]}]}}'
"#;

    #[test]
    fn each_privileged_part_needs_its_grant() {
        let asked: Customization = serde_saphyr::from_str(GREEDY).unwrap();
        let violations = check(&answer(&asked, &Grants::default()), NO_LIFTS, |_| false).unwrap_err();
        let messages: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert_eq!(
            messages,
            [
                "policy `greedy`: `env[0].value.secret_ref` needs the grant `secrets` for `db`",
                "policy `greedy`: `volumes[0].source.host_path` needs the grant `host-path` for `/data/shared/x`",
                "policy `greedy`: `volumes[1].source.secret` needs the grant `secrets` for `creds`",
                "policy `greedy`: `init_containers[0].profile` needs the grant `privileged-init`",
                "policy `greedy`: `init_containers[1].profile` needs the grant `run-as-root-init`",
                "policy `greedy`: `pod_patch` needs the grant `pod-patch` for `spec.hostAliases.hostnames`",
                "policy `greedy`: `pod_patch` needs the grant `pod-patch` for `spec.hostAliases.ip`",
            ]
        );
    }

    #[test]
    fn grants_allow_what_they_list_and_no_more() {
        let asked: Customization = serde_saphyr::from_str(GREEDY).unwrap();
        let grants: Grants = serde_saphyr::from_str(
            "{privileged-init: true, host-path: [/data], secrets: [db, creds], pod-patch: [spec.hostAliases]}",
        )
        .unwrap();
        assert_eq!(check(&answer(&asked, &grants), NO_LIFTS, |_| false).unwrap().len(), 7);
        let narrower = Grants { host_path: vec!["/data/shar".to_owned()], ..grants };
        assert_eq!(
            check(&answer(&asked, &narrower), NO_LIFTS, |_| false).unwrap_err()[0].grant,
            Grant::HostPath
        );
    }

    #[test]
    fn an_unknown_grant_is_an_error() {
        let error = serde_saphyr::from_str::<Grants>("{privileged-inits: true}").unwrap_err().to_string();
        assert!(error.contains("privileged-inits") && error.contains("privileged-init"), "{error}");
    }
}

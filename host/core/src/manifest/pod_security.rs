//! The level of Kubernetes' Pod Security admission that a pod meets
//! (<https://kubernetes.io/docs/concepts/security/pod-security-standards/>).

use k8s_openapi::api::core::v1::{Container, Pod, SecurityContext, Volume};

/// A level of the Pod Security Standards, the strictest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    Restricted,
    Baseline,
    Privileged,
}

impl Level {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Restricted => "restricted",
            Self::Baseline => "baseline",
            Self::Privileged => "privileged",
        }
    }
}

/// Returns the strictest level that a lab's pod meets. Ignores the settings that the security baseline overwrites in
/// every pod, such as namespaces of the node.
pub(super) fn strictest(pod: &Pod) -> Level {
    let Some(spec) = &pod.spec else { return Level::Restricted };
    let context = spec.security_context.as_ref();
    let seccomp =
        context.and_then(|context| context.seccomp_profile.as_ref()).map(|profile| profile.type_.as_str());
    let of_seccomp = match seccomp {
        Some("RuntimeDefault" | "Localhost") => Level::Restricted,
        Some("Unconfined") => Level::Privileged,
        _ => Level::Baseline,
    };
    let volumes = spec.volumes.iter().flatten().map(of_volume);
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten()).map(of_container);
    volumes.chain(containers).fold(of_seccomp, Ord::max)
}

fn of_volume(volume: &Volume) -> Level {
    if volume.host_path.is_some() {
        return Level::Privileged;
    }
    let restricted = volume.config_map.is_some()
        || volume.csi.is_some()
        || volume.downward_api.is_some()
        || volume.empty_dir.is_some()
        || volume.ephemeral.is_some()
        || volume.persistent_volume_claim.is_some()
        || volume.projected.is_some()
        || volume.secret.is_some();
    if restricted { Level::Restricted } else { Level::Baseline }
}

fn of_container(container: &Container) -> Level {
    let Some(context) = &container.security_context else { return Level::Baseline };
    if context.privileged == Some(true) {
        return Level::Privileged;
    }
    let SecurityContext { allow_privilege_escalation, capabilities, run_as_non_root, .. } = context;
    let drops_all = capabilities.as_ref().and_then(|capabilities| capabilities.drop.as_ref());
    let restricted = *allow_privilege_escalation == Some(false)
        && *run_as_non_root == Some(true)
        && drops_all.is_some_and(|drops| drops.iter().any(|capability| capability == "ALL"));
    if restricted { Level::Restricted } else { Level::Baseline }
}

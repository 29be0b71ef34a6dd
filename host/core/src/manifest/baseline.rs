//! The security baseline: security settings that every container of a lab gets, whatever policies and patches set. Only
//! the operator's configuration and grants can lift parts of it.

use k8s_openapi::api::core::v1::{
    AppArmorProfile, Capabilities, Container, Pod, PodSecurityContext, PodSpec, SeccompProfile,
    SecurityContext,
};

use super::{fs_group, metadata};
use crate::config::administrators::Lift;
use crate::names::labels::LIFTED_LABEL;
use crate::policy::{SecurityProfile, ValidatedSpawn};

/// Overwrites the settings that the baseline decides.
pub(super) fn apply(pod: &mut Pod, spawn: &ValidatedSpawn) {
    let whose = metadata::of_lab(spawn, &spawn.names.pod);
    pod.metadata.name = whose.name;
    pod.metadata.namespace = whose.namespace;
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.extend(whose.labels.unwrap_or_default());
    labels.remove(LIFTED_LABEL);
    if !spawn.lifted.is_empty() {
        labels.insert(LIFTED_LABEL.to_owned(), "true".to_owned());
    }
    pod.metadata.annotations.get_or_insert_default().extend(whose.annotations.unwrap_or_default());

    let Some(spec) = &mut pod.spec else { return };
    own_nothing_of_the_node(spec);
    spec.service_account_name = Some(spawn.names.service_account.to_string());
    spec.service_account = None;
    spec.automount_service_account_token = Some(spawn.config.security.service_account_token);
    spec.enable_service_links = Some(false);
    spec.security_context = Some(pod_context(spawn));
    for container in &mut spec.containers {
        let is_lab = container.name == spawn.config.container.as_str();
        let context = if is_lab { own_context(spawn) } else { lab_context(spawn) };
        apply_to_container(container, context);
    }
    for container in spec.init_containers.iter_mut().flatten() {
        let asked = spawn.init_containers.iter().find(|init| init.name == container.name);
        let profile = asked.map(|init| init.profile).unwrap_or_default();
        apply_to_container(container, context(spawn, profile));
    }
}

fn own_nothing_of_the_node(spec: &mut PodSpec) {
    spec.host_network = None;
    spec.host_pid = None;
    spec.host_ipc = None;
    spec.ephemeral_containers = None;
}

fn apply_to_container(container: &mut Container, context: SecurityContext) {
    container.security_context = Some(context);
    container.volume_devices = None;
    for port in container.ports.iter_mut().flatten() {
        port.host_port = None;
        port.host_ip = None;
    }
}

/// Builds the security context of the pod: the lab's user and groups, and the seccomp and `AppArmor` profiles of all
/// containers.
fn pod_context(spawn: &ValidatedSpawn) -> PodSecurityContext {
    let identity = &spawn.identity;
    let groups: Vec<i64> = identity.supplemental_gids().into_iter().map(i64::from).collect();
    let seccomp = if spawn.config.security.unconfined_seccomp { "Unconfined" } else { "RuntimeDefault" };
    let fs_group = fs_group::of_lab(&spawn.config.fs_group, &spawn.volumes, identity.gid);
    PodSecurityContext {
        run_as_user: Some(identity.uid.into()),
        run_as_group: Some(identity.gid.into()),
        run_as_non_root: Some(true),
        supplemental_groups: (!groups.is_empty()).then_some(groups),
        fs_group,
        fs_group_change_policy: fs_group.map(|_| "OnRootMismatch".to_owned()),
        app_armor_profile: (!spawn.config.security.no_app_armor)
            .then(|| AppArmorProfile { type_: "RuntimeDefault".to_owned(), localhost_profile: None }),
        seccomp_profile: Some(SeccompProfile { type_: seccomp.to_owned(), localhost_profile: None }),
        ..PodSecurityContext::default()
    }
}

fn lab_context(spawn: &ValidatedSpawn) -> SecurityContext {
    let lifts = &spawn.config.security;
    SecurityContext {
        allow_privilege_escalation: Some(lifts.privilege_escalation),
        capabilities: (!lifts.default_capabilities).then(no_capabilities),
        run_as_non_root: Some(true),
        ..SecurityContext::default()
    }
}

/// Builds the security context of the lab's own container, which may be an administrator's.
fn own_context(spawn: &ValidatedSpawn) -> SecurityContext {
    let [root, privileged] = [Lift::Root, Lift::Privileged].map(|lift| spawn.lifted.has(&lift));
    let mut context = lab_context(spawn);
    if root {
        context.run_as_user = Some(0);
        context.run_as_group = Some(0);
        context.run_as_non_root = Some(false);
    }
    if privileged {
        context.privileged = Some(true);
    }
    if root || privileged {
        // Kubernetes refuses a privileged container that may not gain privileges, and root without capabilities could not
        // even change a file's owner.
        context.allow_privilege_escalation = Some(true);
        context.capabilities = None;
    }
    context
}

/// Builds the security context of an init container's profile. The grants for all but the first profile were checked
/// before.
fn context(spawn: &ValidatedSpawn, profile: SecurityProfile) -> SecurityContext {
    let as_root = SecurityContext {
        run_as_user: Some(0),
        run_as_group: Some(0),
        run_as_non_root: Some(false),
        ..SecurityContext::default()
    };
    match profile {
        SecurityProfile::Restricted => lab_context(spawn),
        // Root keeps the runtime's default capabilities, without which it could not even change a file's owner.
        SecurityProfile::Baseline => SecurityContext { allow_privilege_escalation: Some(false), ..as_root },
        SecurityProfile::Privileged => SecurityContext { privileged: Some(true), ..as_root },
    }
}

pub(super) fn no_capabilities() -> Capabilities {
    Capabilities { add: None, drop: Some(vec!["ALL".to_owned()]) }
}

//! Properties that pods and containers must not have, each with the rule that refuses it.

use serde_json::{Value, json};

use super::Attack;

/// The messages of the rules, each shortened to a unique part.
pub(super) const LABEL: &str = "a label of JupyterHub's own pods";
pub(super) const FIELD: &str = "a pod has a field";
pub(super) const CLASS: &str = "a priority class or a runtime class";
pub(super) const ACCOUNT: &str = "the service account of a lab";
pub(super) const VOLUME: &str = "a volume of a kind";
pub(super) const SECRET: &str = "a Secret that is neither";
pub(super) const SETTINGS: &str = "kernel settings or a security profile";
pub(super) const PRIVILEGES: &str = "has privileges that the site does not grant";
/// Kubernetes 1.30 derives an annotation from the container's profile, which the rule about the pod as a whole sees
/// first.
const PROFILE: &str = "privileges that the site does not grant";
pub(super) const LIFTED: &str = "the container of an administrator's lab has privileges";
pub(super) const ROOT: &str = "runs as root or with capabilities";
pub(super) const NODE: &str = "a port or device of the node";

/// Properties that a pod as a whole must not have, each with the rule that refuses it.
pub(super) fn of_pods() -> Vec<(Attack, &'static str)> {
    let volume = |source: Value| {
        let mut volume = source;
        volume["name"] = json!("v");
        vec![("/spec/volumes", json!([volume]))]
    };
    let token = |audience: Value| {
        let token = json!({ "path": "token", "expirationSeconds": 3600, "audience": audience });
        volume(json!({ "projected": { "sources": [{ "serviceAccountToken": token }] } }))
    };
    let claim = json!({ "spec": { "accessModes": ["ReadWriteOnce"],
        "resources": { "requests": { "storage": "1Gi" } } } });
    vec![
        (vec![("/metadata/labels/component", json!("hub"))], LABEL),
        (vec![("/spec/hostNetwork", json!(true))], FIELD),
        (vec![("/spec/hostPID", json!(true))], FIELD),
        (vec![("/spec/hostIPC", json!(true))], FIELD),
        (vec![("/spec/nodeName", json!("control-plane"))], FIELD),
        (vec![("/spec/os", json!({ "name": "linux" }))], FIELD),
        (vec![("/spec/priorityClassName", json!("system-node-critical"))], CLASS),
        (vec![("/spec/serviceAccountName", json!("hub"))], ACCOUNT),
        (vec![("/spec/serviceAccountName", json!("default"))], ACCOUNT),
        (vec![("/spec/serviceAccountName", json!("environment"))], ACCOUNT),
        (vec![("/spec/automountServiceAccountToken", json!(true))], ACCOUNT),
        (vec![("/spec/automountServiceAccountToken", Value::Null)], ACCOUNT),
        (token(Value::Null), ACCOUNT),
        (token(json!("vault")), ACCOUNT),
        (volume(json!({ "hostPath": { "path": "/" } })), VOLUME),
        (volume(json!({ "hostPath": { "path": "/var/run/containerd/containerd.sock" } })), VOLUME),
        (volume(json!({ "csi": { "driver": "secrets-store.csi.k8s.io" } })), VOLUME),
        (volume(json!({ "ephemeral": { "volumeClaimTemplate": claim } })), VOLUME),
        (
            volume(json!({ "iscsi": { "targetPortal": "10.0.0.1", "iqn": "iqn.2001-04.org:a", "lun": 0 } })),
            VOLUME,
        ),
        (volume(json!({ "secret": { "secretName": "hub" } })), SECRET),
        (volume(json!({ "projected": { "sources": [{ "secret": { "name": "hub" } }] } })), SECRET),
        (vec![("/spec/securityContext", Value::Null)], SETTINGS),
        (vec![("/spec/securityContext/runAsNonRoot", Value::Null)], SETTINGS),
        (vec![("/spec/securityContext/runAsUser", json!(0))], SETTINGS),
        (
            vec![("/spec/securityContext/sysctls", json!([{ "name": "kernel.msgmax", "value": "1" }]))],
            SETTINGS,
        ),
        (vec![("/spec/securityContext/seccompProfile/type", json!("Unconfined"))], SETTINGS),
        (vec![("/spec/securityContext/seccompProfile", Value::Null)], SETTINGS),
        (vec![("/spec/securityContext/appArmorProfile/type", json!("Unconfined"))], SETTINGS),
        (
            vec![
                ("/spec/securityContext/appArmorProfile", Value::Null),
                (
                    "/metadata/annotations",
                    json!({ "container.apparmor.security.beta.kubernetes.io/notebook": "unconfined" }),
                ),
            ],
            SETTINGS,
        ),
        (vec![("/spec/securityContext/seLinuxOptions", json!({ "type": "spc_t" }))], SETTINGS),
        (
            vec![("/spec/securityContext/windowsOptions", json!({ "runAsUserName": "Administrator" }))],
            SETTINGS,
        ),
    ]
}

/// Properties that a container must not have, each with the rule that refuses it. The pointers are relative to the
/// container.
pub(super) fn of_containers() -> Vec<(Attack, &'static str)> {
    let probe = |action: &str| json!({ (action): { "host": "10.0.0.1", "port": 6443 } });
    let hook = |action: &str| json!({ "postStart": probe(action) });
    let privileged =
        json!({ "privileged": true, "capabilities": { "drop": ["ALL"] }, "allowPrivilegeEscalation": true });
    vec![
        (vec![("/securityContext", Value::Null)], PRIVILEGES),
        (vec![("/securityContext", privileged)], PRIVILEGES),
        (vec![("/securityContext/allowPrivilegeEscalation", json!(true))], PRIVILEGES),
        (vec![("/securityContext/allowPrivilegeEscalation", Value::Null)], PRIVILEGES),
        (vec![("/securityContext/capabilities/add", json!(["NET_RAW"]))], PRIVILEGES),
        (vec![("/securityContext/seccompProfile", json!({ "type": "Unconfined" }))], PRIVILEGES),
        (vec![("/securityContext/appArmorProfile", json!({ "type": "Unconfined" }))], PROFILE),
        (vec![("/securityContext/seLinuxOptions", json!({ "type": "spc_t" }))], PRIVILEGES),
        (vec![("/securityContext/windowsOptions", json!({ "runAsUserName": "Administrator" }))], PRIVILEGES),
        (vec![("/securityContext/runAsUser", json!(0))], ROOT),
        (vec![("/securityContext/runAsNonRoot", json!(false))], ROOT),
        (vec![("/securityContext/capabilities", Value::Null)], ROOT),
        (vec![("/securityContext/capabilities/drop", json!(["NET_RAW"]))], ROOT),
        (vec![("/ports", json!([{ "containerPort": 8888, "hostPort": 8888 }]))], NODE),
        (vec![("/volumeDevices", json!([{ "name": "disk", "devicePath": "/dev/sda" }]))], NODE),
        (vec![("/lifecycle", hook("httpGet"))], NODE),
        (vec![("/lifecycle", hook("tcpSocket"))], NODE),
        (vec![("/startupProbe", probe("httpGet"))], NODE),
        (vec![("/readinessProbe", probe("tcpSocket"))], NODE),
        (vec![("/livenessProbe", probe("httpGet"))], NODE),
        (
            vec![(
                "/env",
                json!([{ "name": "A", "valueFrom": { "secretKeyRef": { "name": "hub", "key": "k" } } }]),
            )],
            SECRET,
        ),
        (vec![("/envFrom", json!([{ "secretRef": { "name": "hub" } }]))], SECRET),
    ]
}

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;

use crate::values::digest::Digest;

/// Returns a digest of the requested lab: two spawns with the same digest requested the same lab from the cluster. It
/// leaves out secrets and values that differ in every spawn.
pub(super) fn digest(pod: &Pod, env: &ConfigMap) -> String {
    let text = json!({ "pod": pod.spec, "env": env.data }).to_string();
    Digest::sha256(text.as_bytes()).to_string()
}

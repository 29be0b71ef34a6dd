use std::fmt::Write as _;

use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use serde_json::json;
use sha2::{Digest, Sha256};

/// Returns a digest of the requested lab: two spawns with the same digest requested the same lab from the cluster. It
/// leaves out secrets and values that differ in every spawn.
pub(super) fn of(pod: &Pod, env: &ConfigMap) -> String {
    let text = json!({ "pod": pod.spec, "env": env.data }).to_string();
    Sha256::digest(text).iter().fold("sha256:".to_owned(), |mut hex, byte| {
        // Writing to a String cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

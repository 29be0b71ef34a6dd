//! Where a lab is in the cluster.

use k8s_openapi::api::core::v1::{Event, Pod};
use wasmspawner_core::config::lab::LabConfig;
use wasmspawner_core::names::LabNames;

/// Where a lab is in the cluster. Recorded on its objects: a template that changed since must not move a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) namespace: String,
    pub(super) pod: String,
}

impl Place {
    pub(super) fn of(names: &LabNames) -> Self {
        Self { namespace: names.namespace.to_string(), pod: names.pod.to_string() }
    }

    /// True for an event about the lab's pod, or about a volume claim in its namespace.
    pub(super) fn concerns(&self, event: &Event) -> bool {
        let about = &event.involved_object;
        if about.namespace.as_deref() != Some(self.namespace.as_str()) {
            return false;
        }
        match about.kind.as_deref() {
            Some("Pod") => about.name.as_deref() == Some(self.pod.as_str()),
            Some("PersistentVolumeClaim") => true,
            _ => false,
        }
    }

    /// Where the Hub reaches the lab of this pod, once it has an address.
    pub(super) fn url(pod: &Pod, config: &LabConfig) -> Option<String> {
        let ip = pod.status.as_ref()?.pod_ip.as_deref().filter(|ip| !ip.is_empty())?;
        let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
        Some(format!("http://{host}:{}", config.port))
    }
}

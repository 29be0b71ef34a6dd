//! `workloads`: labs in the pods of other workloads.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{EmbeddedConfig, InvalidSetting, KubernetesConfig};
use crate::names::NamespaceName;
use crate::values::port_range::PortRange;

/// Labs in the pods of Deployments, `StatefulSets` and `DaemonSets` of others. Only where a policy allows it, too. It needs the
/// permissions of `deploy/permissions/workloads.yaml` in each of these namespaces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadsConfig {
    /// The namespaces whose workloads may get labs. Default: none.
    pub namespaces: BTreeSet<NamespaceName>,
    /// The ports from which the service chooses one for each lab, because its pod's other containers have theirs. Network
    /// policies of the namespaces must let the Hub reach them.
    pub ports: PortRange,
}

impl Default for WorkloadsConfig {
    fn default() -> Self {
        Self { namespaces: BTreeSet::new(), ports: PortRange::new(40_000, 40_999) }
    }
}

impl WorkloadsConfig {
    pub(super) fn check(
        &self,
        kubernetes: &KubernetesConfig,
        embedded: Option<&EmbeddedConfig>,
    ) -> Option<InvalidSetting> {
        let problem = |message: String| Some(InvalidSetting::new("workloads.namespaces", message));
        if embedded.is_some() && !self.namespaces.is_empty() {
            let message = "the one-machine cluster has no workloads; remove it, or use a Kubernetes cluster";
            return problem(message.to_owned());
        }
        if self.namespaces.contains(&kubernetes.namespace) {
            return problem(format!(
                "{} is the service's own namespace (kubernetes.namespace); a lab in its pods would have its permissions",
                kubernetes.namespace
            ));
        }
        let of_kubernetes = self.namespaces.iter().find(|namespace| namespace.as_str().starts_with("kube-"));
        of_kubernetes.and_then(|namespace| {
            problem(format!("{namespace} is a namespace of Kubernetes itself; labs have no business there"))
        })
    }
}

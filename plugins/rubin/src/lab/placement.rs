use std::collections::BTreeMap;

use serde_json::{Map, Value, json};
use wasmspawner_sdk::pod::{TaintEffect, Toleration, TolerationOperator};
use wasmspawner_sdk::{Pair, Section};

/// The nodes on which labs may run, and the annotations of their pods.
#[derive(Default)]
pub(crate) struct Placement {
    pub(crate) node_selector: Vec<Pair>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) annotations: Vec<Pair>,
    /// A patch of the pod with Kubernetes' affinity, which the interface of policies cannot express.
    pub(crate) patch: Option<String>,
}

impl Placement {
    pub(super) fn read(lab: &mut Section<'_>) -> Self {
        let affinity: Map<String, Value> = lab.or_default("affinity");
        Self {
            node_selector: pairs(lab, "nodeSelector"),
            tolerations: lab.list("tolerations", toleration),
            annotations: pairs(lab, "extraAnnotations"),
            patch: (!affinity.is_empty()).then(|| json!({"spec": {"affinity": affinity}}).to_string()),
        }
    }
}

fn pairs(lab: &mut Section<'_>, key: &'static str) -> Vec<Pair> {
    let pairs: BTreeMap<String, String> = lab.or_default(key);
    pairs.into_iter().map(|(name, value)| Pair { name, value }).collect()
}

fn toleration(entry: &mut Section<'_>) -> Toleration {
    let operator = entry.parsed("operator", |text| match text {
        "Exists" => Ok(TolerationOperator::Exists),
        "Equal" => Ok(TolerationOperator::Equal),
        _ => Err("must be Exists or Equal"),
    });
    Toleration {
        key: entry.optional("key"),
        operator: operator.unwrap_or(TolerationOperator::Equal),
        value: entry.optional("value"),
        effect: entry.parsed("effect", |text| match text {
            "NoSchedule" => Ok(TaintEffect::NoSchedule),
            "PreferNoSchedule" => Ok(TaintEffect::PreferNoSchedule),
            "NoExecute" => Ok(TaintEffect::NoExecute),
            _ => Err("must be NoSchedule, PreferNoSchedule or NoExecute"),
        }),
        seconds: entry.optional("tolerationSeconds"),
    }
}

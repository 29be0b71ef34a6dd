use std::collections::BTreeMap;

use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::{AffinityPreset, TaintEffect, Toleration, TolerationOperator};

/// The nodes on which labs may run.
pub(crate) struct Placement {
    pub(crate) node_selector: Vec<(String, String)>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) affinity: Option<AffinityPreset>,
}

impl Placement {
    pub(crate) fn read(config: &mut Section<'_>) -> Self {
        Self {
            node_selector: pairs(config, "node_selector"),
            tolerations: config.list("tolerations", toleration),
            affinity: config.parsed("affinity", |text| match text {
                "none" => Ok(AffinityPreset::None),
                "spread" => Ok(AffinityPreset::Spread),
                "pack" => Ok(AffinityPreset::Pack),
                _ => Err("must be none, spread or pack"),
            }),
        }
    }
}

pub(crate) fn pairs(config: &mut Section<'_>, key: &'static str) -> Vec<(String, String)> {
    config.or_default::<BTreeMap<String, String>>(key).into_iter().collect()
}

/// Reads a toleration with the field names of this policy: `{key, operator, value, effect, seconds}`.
pub(crate) fn toleration(entry: &mut Section<'_>) -> Toleration {
    let effect = entry.parsed("effect", taint_effect);
    toleration_of(entry, effect, "seconds")
}

/// Reads a toleration. The two formats differ only in the notation of the effect and in the key of the seconds.
pub(crate) fn toleration_of(
    entry: &mut Section<'_>,
    effect: Option<TaintEffect>,
    seconds: &'static str,
) -> Toleration {
    let operator = entry.parsed("operator", |text| match text {
        "Exists" => Ok(TolerationOperator::Exists),
        "Equal" => Ok(TolerationOperator::Equal),
        _ => Err("must be Exists or Equal"),
    });
    Toleration {
        key: entry.optional("key"),
        operator: operator.unwrap_or(TolerationOperator::Equal),
        value: entry.optional("value"),
        effect,
        seconds: entry.optional(seconds),
    }
}

pub(crate) fn taint_effect(text: &str) -> Result<TaintEffect, &'static str> {
    match text {
        "NoSchedule" => Ok(TaintEffect::NoSchedule),
        "PreferNoSchedule" => Ok(TaintEffect::PreferNoSchedule),
        "NoExecute" => Ok(TaintEffect::NoExecute),
        _ => Err("must be NoSchedule, PreferNoSchedule or NoExecute"),
    }
}

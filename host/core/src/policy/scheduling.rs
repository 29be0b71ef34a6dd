use serde::{Deserialize, Serialize};

/// The operator by which a toleration matches a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TolerationOperator {
    /// Any value of the key; without a key, every taint.
    Exists,
    /// This value of the key.
    Equal,
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaintEffect {
    /// New pods are not scheduled on the node.
    NoSchedule,
    /// New pods are scheduled on another node if possible.
    PreferNoSchedule,
    /// Pods are evicted from the node.
    NoExecute,
}

/// A taint that the lab tolerates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toleration {
    /// The taint's key; absent, with `exists`, for all taints.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The operator by which the toleration matches.
    pub operator: TolerationOperator,
    /// The taint's value, with `equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// The taint's effect; absent for all effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// With `no_execute`: the time for which the taint is tolerated, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// Preference among suitable nodes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AffinityPreset {
    /// No preference.
    #[default]
    None,
    /// Labs on different nodes if possible.
    Spread,
    /// Labs on the same nodes if possible, so that other nodes can be removed.
    Pack,
}

use serde::{Deserialize, Serialize};

/// How a toleration matches a taint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TolerationOperator {
    /// Any value of the key; without a key, every taint.
    Exists,
    /// This value of the key.
    Equal,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaintEffect {
    /// Not scheduled there.
    NoSchedule,
    /// Scheduled elsewhere where possible.
    PreferNoSchedule,
    /// Evicted from there.
    NoExecute,
}

/// A taint the lab may live with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Toleration {
    /// The taint's key; absent with `exists` for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// How it matches.
    pub operator: TolerationOperator,
    /// The taint's value, with `equal`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Which effect; absent for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
    /// With `no_execute`: for how many seconds it is tolerated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
}

/// Where labs go among nodes that would all do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AffinityPreset {
    /// The scheduler decides.
    #[default]
    None,
    /// Labs apart from each other where possible.
    Spread,
    /// Labs together where possible, so that nodes can be scaled away.
    Pack,
}

use serde_json::Value;

use crate::report::Report;

/// What the values do not say.
pub struct Target {
    /// The namespace of the Hub, in which labs and their claims stay.
    pub namespace: String,
    /// The namespace of this service.
    pub service_namespace: String,
    /// The file of the policy `default`, relative to the configuration.
    pub policy: String,
}

/// The result of a conversion.
pub struct Migration {
    /// The configuration of this service.
    pub config: Value,
    /// Values for this service's chart.
    pub chart_values: Value,
    /// What became of each key.
    pub report: Report,
    /// The key below which the files have the chart's values; empty if they are at the top.
    pub root: String,
    /// The Secret in which the Hub's chart keeps the tokens of its services; empty for files of Nublado.
    pub hub_secret: String,
    /// Rules of the files' own for what the Hub may connect to. Values with further rules have to repeat them, because Helm
    /// replaces lists.
    pub hub_egress: Vec<Value>,
    /// The same for the Hub's proxy.
    pub proxy_egress: Vec<Value>,
}

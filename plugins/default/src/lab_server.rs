//! Labs whose program is not the Jupyter of the service's own configuration: their port, and their readiness probe.

use serde_json::Value;
use wasmspawner_sdk::lab_server::{Probe, Settings};
use wasmspawner_sdk::{Error, Options, Section, User, hooks};

use crate::DefaultPolicy;

impl hooks::LabServer for DefaultPolicy {
    fn lab_server(&self, user: &User, _: &str, options: &Options) -> Result<Settings, Error> {
        let program = self.images.program(user, options)?;
        let mut settings = program.map(|program| program.server.clone()).unwrap_or_default();
        self.profiles.chosen(user, options)?.apply_to_server(&mut settings);
        Ok(settings)
    }
}

/// Reads the keys `port` and `probe`.
pub(crate) fn read(entry: &mut Section<'_>) -> Settings {
    Settings { port: entry.optional("port"), probe: probe(entry) }
}

/// Reads the key `probe`, the kubelet's check that the lab is ready: `tcp`, `none`, or an HTTP path.
pub(crate) fn probe(entry: &mut Section<'_>) -> Option<Probe> {
    let value: Value = entry.optional("probe")?;
    let probe = match &value {
        Value::String(word) if word == "tcp" => Some(Probe::Tcp),
        Value::String(word) if word == "none" => Some(Probe::None),
        Value::Object(map) if map.len() == 1 => {
            map.get("http").and_then(Value::as_str).map(|path| Probe::Http(path.to_owned()))
        }
        _ => None,
    };
    if probe.is_none() && !value.is_null() {
        entry.problem("probe", "must be `tcp`, `none`, or `{http: PATH}`");
    }
    probe
}

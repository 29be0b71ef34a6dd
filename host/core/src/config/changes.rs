//! What changes when a running service reads its configuration again.

use serde::Serialize;
use serde_json::Value;

use super::{BlueprintsConfig, ConfigFile, LimitsConfig, PerUserLimits, WorkloadsConfig};

/// The keys that differ between the configuration of a running service and the one that it has read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConfigChanges {
    /// Keys whose new values are in use from now on.
    pub applied: Vec<String>,
    /// Keys whose new values are used after a restart.
    pub need_restart: Vec<String>,
}

impl ConfigFile {
    /// What a running service with this configuration uses after it has read `new`: the settings that are used once,
    /// when the service starts, stay as they are.
    #[must_use]
    pub fn updated_to(&self, new: &Self) -> Self {
        let (old, new) = (self.clone(), new.clone());
        Self {
            http: old.http,
            hub: old.hub,
            kubernetes: old.kubernetes,
            embedded: old.embedded,
            environments: old.environments,
            blueprints: BlueprintsConfig {
                custom_resources: old.blueprints.custom_resources,
                ..new.blueprints
            },
            workloads: WorkloadsConfig { namespaces: old.workloads.namespaces, ..new.workloads },
            telemetry: old.telemetry,
            history: old.history,
            registries: old.registries,
            state_dir: old.state_dir,
            limits: LimitsConfig {
                concurrent_spawns: old.limits.concurrent_spawns,
                per_user: PerUserLimits {
                    labs: new.limits.per_user.labs,
                    kernels: new.limits.per_user.kernels,
                    dask_pools: new.limits.per_user.dask_pools,
                    dask_workers: new.limits.per_user.dask_workers,
                    ..old.limits.per_user
                },
                reconcile_every: old.limits.reconcile_every,
                history: old.limits.history,
                history_operations: old.limits.history_operations,
                ..new.limits
            },
            ..new
        }
    }

    /// The keys in which `new` differs.
    pub fn changes_to(&self, new: &Self) -> ConfigChanges {
        let updated = self.updated_to(new);
        ConfigChanges { applied: different_keys(self, &updated), need_restart: different_keys(&updated, new) }
    }
}

impl ConfigChanges {
    /// True if nothing differs.
    pub fn is_empty(&self) -> bool {
        self.applied.is_empty() && self.need_restart.is_empty()
    }
}

fn different_keys(old: &impl Serialize, new: &impl Serialize) -> Vec<String> {
    let (old, new) = (serde_json::to_value(old), serde_json::to_value(new));
    let mut keys = Vec::new();
    if let (Ok(old), Ok(new)) = (old, new) {
        collect(&old, &new, "", &mut keys);
    }
    keys
}

/// Adds the key of each value that differs, such as `policies[0].config.images`. Lists of different lengths differ as a
/// whole.
fn collect(old: &Value, new: &Value, key: &str, keys: &mut Vec<String>) {
    match (old, new) {
        (Value::Object(old), Value::Object(new)) => {
            let added = new.keys().filter(|name| !old.contains_key(*name));
            for name in old.keys().chain(added) {
                let inner = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
                let value = |object: &serde_json::Map<String, Value>| object.get(name).cloned();
                let (old, new) = (value(old).unwrap_or_default(), value(new).unwrap_or_default());
                collect(&old, &new, &inner, keys);
            }
        }
        (Value::Array(old), Value::Array(new)) if old.len() == new.len() => {
            for (index, (old, new)) in old.iter().zip(new).enumerate() {
                collect(old, new, &format!("{key}[{index}]"), keys);
            }
        }
        _ if old != new => keys.push(key.to_owned()),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> ConfigFile {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn each_changed_key_is_named_once() {
        for (old, new, applied, need_restart) in [
            ("", "", &[][..], &[][..]),
            ("limits: {spawn: 5m}", "limits: {spawn: 300s}", &[], &[]),
            ("", "limits: {spawn: 5m}", &["limits.spawn"], &[]),
            ("", "lab: {env: {A: b}}", &["lab.env.A"], &[]),
            ("lab: {env: {A: b}}", "", &["lab.env.A"], &[]),
            ("", "http: {listen: '127.0.0.1:1'}", &[], &["http.listen"]),
            ("", "kubernetes: {namespaces: retain}", &[], &["kubernetes.namespaces"]),
            ("", "state_dir: /data", &[], &["state_dir"]),
            (
                "",
                "limits: {per_user: {labs: 3, event_streams: 3}}",
                &["limits.per_user.labs"],
                &["limits.per_user.event_streams"],
            ),
            (
                "policies: [{name: a, path: a.wasm, config: {menu: [x]}}]",
                "policies: [{name: a, path: a.wasm, config: {menu: [y]}}]",
                &["policies[0].config.menu[0]"],
                &[],
            ),
            ("policies: [{name: a, path: a.wasm}]", "", &["policies"], &[]),
        ] {
            let changes = file(old).changes_to(&file(new));
            assert_eq!(changes.applied, applied, "{old} -> {new}");
            assert_eq!(changes.need_restart, need_restart, "{old} -> {new}");
            assert_eq!(changes.is_empty(), applied.is_empty() && need_restart.is_empty());
        }
    }

    #[test]
    fn a_setting_that_waits_for_a_restart_is_reported_until_then() {
        let (old, new) = (file(""), file("http: {listen: '127.0.0.1:1'}\nlimits: {spawn: 5m, history: 1h}"));
        let running = old.updated_to(&new);
        assert_eq!(running.limits.spawn, new.limits.spawn);
        assert_eq!(running.limits.history, old.limits.history);
        let again = running.changes_to(&new);
        assert!(again.applied.is_empty(), "{again:?}");
        assert_eq!(again.need_restart, ["http.listen", "limits.history"]);
    }
}

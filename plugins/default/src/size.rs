use std::collections::BTreeMap;

use wasmspawner_sdk::pod::{Resources, Toleration};
use wasmspawner_sdk::{Section, quantity};

use crate::placement;

/// The resources of a lab, and the nodes that have them.
pub(crate) struct Size {
    pub(crate) resources: Resources,
    pub(crate) node_selector: Vec<(String, String)>,
    pub(crate) tolerations: Vec<Toleration>,
    pub(crate) environment_class: Option<String>,
}

impl Size {
    pub(crate) fn read(entry: &mut Section<'_>) -> (Self, Option<String>) {
        for key in ["cpu", "memory"] {
            if !entry.has(key) {
                entry.problem(key, "is missing");
            }
        }
        let resources = read_resources(entry);
        let description = describe(&resources);
        let size = Self {
            resources,
            node_selector: placement::pairs(entry, "node_selector"),
            tolerations: entry.list("tolerations", placement::toleration),
            environment_class: entry.optional("environment_class"),
        };
        (size, Some(description))
    }
}

/// Reads limits and requests. Default requests are a quarter of the limits, because labs are idle most of the time.
pub(crate) fn read_resources(entry: &mut Section<'_>) -> Resources {
    let cpu = entry.parsed("cpu", quantity::cpu_millis);
    let memory = entry.parsed("memory", quantity::bytes);
    let cpu_request = entry.parsed("cpu_request", quantity::cpu_millis);
    let memory_request = entry.parsed("memory_request", quantity::bytes);
    if cpu_request > cpu && cpu.is_some() {
        entry.problem("cpu_request", "is more than `cpu`, the limit");
    }
    if memory_request > memory && memory.is_some() {
        entry.problem("memory_request", "is more than `memory`, the limit");
    }
    let extended: BTreeMap<String, u64> = entry.or_default("extended");
    Resources {
        cpu_limit_millis: cpu,
        cpu_request_millis: cpu_request.or(cpu.map(|millis| millis / 4)),
        memory_limit_bytes: memory,
        memory_request_bytes: memory_request.or(memory.map(|bytes| bytes / 4)),
        extended: extended.into_iter().collect(),
        claims: Vec::new(),
    }
}

/// A description such as `2 CPU · 4 GiB memory · 1 gpu`.
fn describe(resources: &Resources) -> String {
    let mut parts = Vec::new();
    if let Some(millis) = resources.cpu_limit_millis {
        parts.push(format!("{} CPU", quantity::show_cpus(millis)));
    }
    if let Some(bytes) = resources.memory_limit_bytes {
        parts.push(format!("{} memory", quantity::show_bytes(bytes)));
    }
    for (name, amount) in &resources.extended {
        parts.push(format!("{amount} × {}", name.rsplit('/').next().unwrap_or(name)));
    }
    parts.join(" · ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_is_described_in_readable_units() {
        let all = Resources {
            cpu_limit_millis: Some(1500),
            memory_limit_bytes: Some(4 << 30),
            extended: vec![("nvidia.com/gpu".into(), 1)],
            ..Resources::default()
        };
        assert_eq!(describe(&all), "1.5 CPU · 4 GiB memory · 1 × gpu");
        let small = Resources {
            cpu_limit_millis: Some(250),
            memory_limit_bytes: Some(512 << 20),
            ..Resources::default()
        };
        assert_eq!(describe(&small), "0.3 CPU · 512 MiB memory");
    }
}

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::Pod;

use super::{Provenance, Source};
use crate::names::ObjectName;
use crate::policy::{
    AffinityPreset, Customization, EnvValue, Image, InitContainer, LabServer, Mount, Pair, Resources,
    TimeLimits, Toleration, Volume,
};

/// The merged answers of a chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Merged {
    pub(super) image: Option<Image>,
    pub(super) env: BTreeMap<String, EnvValue>,
    pub(super) labels: BTreeMap<String, String>,
    pub(super) annotations: BTreeMap<String, String>,
    pub(super) resources: Resources,
    pub(super) tolerations: Vec<Toleration>,
    pub(super) node_selector: BTreeMap<String, String>,
    pub(super) affinity: Option<AffinityPreset>,
    pub(super) volumes: Vec<Volume>,
    pub(super) mounts: Vec<Mount>,
    pub(super) init_containers: Vec<InitContainer>,
    pub(super) command: Option<Vec<String>>,
    pub(super) args: Option<Vec<String>>,
    pub(super) working_dir: Option<String>,
    pub(super) time_limits: TimeLimits,
    pub(super) environment_class: Option<String>,
    pub(super) server: LabServer,
    /// The existing service account that a policy names.
    pub(super) service_account: Option<ObjectName>,
    /// The parsed patches of the pod, in the order of the chain.
    pub(super) pod_patches: Vec<Pod>,
}

impl Merged {
    /// Adds the next answer of the chain. It wins over earlier answers; lists of named items are merged by name.
    pub(super) fn add(&mut self, by: &Source, asked: Customization, provenance: &mut Provenance) {
        let mut merge = Merge { by, provenance };
        merge.option("image", &mut self.image, asked.image);
        for var in asked.env {
            merge.entry("env", &mut self.env, var.name, var.value);
        }
        merge.pairs("labels", &mut self.labels, asked.labels);
        merge.pairs("annotations", &mut self.annotations, asked.annotations);
        merge.pairs("node_selector", &mut self.node_selector, asked.node_selector);
        if let Some(asked) = asked.resources {
            merge.resources("resources", &mut self.resources, asked);
        }
        for toleration in asked.tolerations {
            if !self.tolerations.contains(&toleration) {
                merge.provenance.set(format!("tolerations[{}]", self.tolerations.len()), by);
                self.tolerations.push(toleration);
            }
        }
        merge.option("affinity", &mut self.affinity, asked.affinity);
        merge.items("volumes", &mut self.volumes, asked.volumes, |volume| &volume.name);
        merge.items("mounts", &mut self.mounts, asked.mounts, |mount| &mount.path);
        merge.items("init_containers", &mut self.init_containers, asked.init_containers, |init| &init.name);
        merge.option("command", &mut self.command, asked.command);
        merge.option("args", &mut self.args, asked.args);
        merge.option("working_dir", &mut self.working_dir, asked.working_dir);
        if let Some(asked) = asked.time_limits {
            let limits = &mut self.time_limits;
            merge.option("time_limits.spawn_seconds", &mut limits.spawn_seconds, asked.spawn_seconds);
            merge.option("time_limits.delete_seconds", &mut limits.delete_seconds, asked.delete_seconds);
        }
        merge.option("environment_class", &mut self.environment_class, asked.environment_class);
    }

    /// Adds the next answer of the chain to `lab-server`. It wins over earlier answers.
    pub(super) fn add_server(&mut self, by: &Source, asked: LabServer, provenance: &mut Provenance) {
        let mut merge = Merge { by, provenance };
        merge.option("port", &mut self.server.port, asked.port);
        merge.option("probe", &mut self.server.probe, asked.probe);
    }
}

struct Merge<'a> {
    by: &'a Source,
    provenance: &'a mut Provenance,
}

impl Merge<'_> {
    fn option<T: PartialEq>(&mut self, field: &str, slot: &mut Option<T>, value: Option<T>) {
        if let Some(value) = value {
            self.provenance.put(field, self.by, slot, value);
        }
    }

    fn entry<V: PartialEq>(&mut self, field: &str, map: &mut BTreeMap<String, V>, name: String, value: V) {
        let path = format!("{field}.{name}");
        let mut slot = map.remove(&name);
        self.provenance.put(&path, self.by, &mut slot, value);
        map.extend(slot.map(|value| (name, value)));
    }

    fn pairs(&mut self, field: &str, map: &mut BTreeMap<String, String>, pairs: Vec<Pair>) {
        for pair in pairs {
            self.entry(field, map, pair.name, pair.value);
        }
    }

    /// Merges named items into a list and keeps their order.
    fn items<T: PartialEq>(
        &mut self,
        field: &str,
        list: &mut Vec<T>,
        items: Vec<T>,
        name: fn(&T) -> &String,
    ) {
        for item in items {
            let path = format!("{field}.{}", name(&item));
            match list.iter_mut().find(|old| name(old) == name(&item)) {
                Some(old) if *old == item => {}
                Some(old) => {
                    *old = item;
                    self.provenance.replaced(path, self.by);
                }
                None => {
                    list.push(item);
                    self.provenance.set(path, self.by);
                }
            }
        }
    }

    fn resources(&mut self, field: &str, merged: &mut Resources, asked: Resources) {
        for (name, slot, value) in [
            ("cpu_limit_millis", &mut merged.cpu_limit_millis, asked.cpu_limit_millis),
            ("cpu_request_millis", &mut merged.cpu_request_millis, asked.cpu_request_millis),
            ("memory_limit_bytes", &mut merged.memory_limit_bytes, asked.memory_limit_bytes),
            ("memory_request_bytes", &mut merged.memory_request_bytes, asked.memory_request_bytes),
        ] {
            self.option(&format!("{field}.{name}"), slot, value);
        }
        self.items(&format!("{field}.extended"), &mut merged.extended, asked.extended, |(name, _)| name);
        self.items(&format!("{field}.claims"), &mut merged.claims, asked.claims, |claim| &claim.name);
    }
}

//! The grants that the converted settings need.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

#[derive(Default)]
struct Needed {
    pod_patch: BTreeSet<String>,
    secrets: BTreeSet<String>,
    host_path: BTreeSet<String>,
    metadata: BTreeSet<String>,
    ports: BTreeSet<u64>,
    accounts: BTreeSet<String>,
    root: bool,
    privileged: bool,
}

/// Returns the grants for the settings of every lab and for the profiles: as few as suffice.
pub(crate) fn needed(kubespawner: &Map<String, Value>, profiles: Option<&Value>) -> Map<String, Value> {
    let mut needed = Needed::default();
    needed.settings(kubespawner);
    if let Some(profiles) = profiles {
        needed.overrides(profiles);
    }
    let mut grants = Map::new();
    let mut list = |name: &str, of: BTreeSet<String>| {
        if !of.is_empty() {
            grants.insert(name.to_owned(), of.into_iter().collect());
        }
    };
    list("host-path", needed.host_path);
    list("metadata", needed.metadata);
    list("pod-patch", needed.pod_patch);
    list("secrets", needed.secrets);
    list("service-accounts", needed.accounts);
    if !needed.ports.is_empty() {
        grants.insert("ports".to_owned(), needed.ports.into_iter().collect());
    }
    if needed.root {
        grants.insert("run-as-root-init".to_owned(), true.into());
    }
    if needed.privileged {
        grants.insert("privileged-init".to_owned(), true.into());
    }
    grants
}

impl Needed {
    /// Finds the overrides in a list of profiles.
    fn overrides(&mut self, value: &Value) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| self.overrides(item)),
            Value::Object(entries) => {
                for (key, value) in entries {
                    match value.as_object().filter(|_| key == "kubespawner_override") {
                        Some(settings) => self.settings(settings),
                        None => self.overrides(value),
                    }
                }
            }
            _ => {}
        }
    }

    fn settings(&mut self, settings: &Map<String, Value>) {
        for (key, value) in settings {
            match key.as_str() {
                "image_pull_policy" => self.of_container(["imagePullPolicy"]),
                "lifecycle_hooks" => self.of_container(["lifecycle"]),
                "extra_container_config" => self.of_container(keys(value)),
                "extra_containers" => {
                    for container in items(value) {
                        self.of_container(keys(container));
                        self.secrets_of_container(container);
                    }
                }
                "extra_pod_config" => {
                    self.pod_patch.extend(keys(value).map(|key| format!("spec.{}", camel_case(key))));
                    items(value.get("volumes").unwrap_or(&Value::Null))
                        .for_each(|volume| self.volume(volume));
                }
                "scheduler_name" => self.of_pod("schedulerName"),
                "priority_class_name" => self.of_pod("priorityClassName"),
                affinity if affinity.contains("_affinity_") => self.of_pod("affinity"),
                "environment" => {
                    items(value).for_each(|value| self.variable(value));
                }
                "volumes" => items(value).for_each(|volume| self.volume(volume)),
                "init_containers" => items(value).for_each(|container| self.init_container(container)),
                "extra_labels"
                | "extra_annotations"
                | "storage_extra_labels"
                | "storage_extra_annotations" => {
                    let acted_on =
                        |key: &&str| key.contains('/') || ["app", "component", "release"].contains(key);
                    self.metadata.extend(keys(value).filter(acted_on).map(str::to_owned));
                }
                "service_account" => {
                    self.accounts.extend(value.as_str().filter(|name| !name.is_empty()).map(str::to_owned));
                }
                "port" => self.ports.extend(value.as_u64()),
                _ => {}
            }
        }
    }

    fn of_pod(&mut self, field: &str) {
        self.pod_patch.insert(format!("spec.{field}"));
    }

    fn of_container<'a>(&mut self, fields: impl IntoIterator<Item = &'a str>) {
        self.pod_patch.insert("spec.containers.name".to_owned());
        self.pod_patch
            .extend(fields.into_iter().map(|field| format!("spec.containers.{}", camel_case(field))));
    }

    fn volume(&mut self, volume: &Value) {
        let text = |place: &str| volume.pointer(place).and_then(Value::as_str).map(str::to_owned);
        self.secrets.extend(text("/secret/secretName"));
        self.host_path.extend(text("/hostPath/path"));
    }

    /// A variable of `environment`, or of a container.
    fn variable(&mut self, variable: &Value) {
        let name = variable.pointer("/valueFrom/secretKeyRef/name").and_then(Value::as_str);
        self.secrets.extend(name.map(str::to_owned));
    }

    fn secrets_of_container(&mut self, container: &Value) {
        items(container.get("env").unwrap_or(&Value::Null)).for_each(|variable| self.variable(variable));
        for from in items(container.get("envFrom").unwrap_or(&Value::Null)) {
            let name = from.pointer("/secretRef/name").and_then(Value::as_str);
            self.secrets.extend(name.map(str::to_owned));
        }
    }

    fn init_container(&mut self, container: &Value) {
        self.secrets_of_container(container);
        let context = container.get("securityContext");
        let is = |key: &str, value: Value| context.and_then(|context| context.get(key)) == Some(&value);
        let privileged = is("privileged", true.into());
        self.privileged |= privileged;
        self.root |= !privileged && is("runAsUser", 0.into());
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    let list = value.as_array().into_iter().flatten();
    list.chain(value.as_object().into_iter().flat_map(Map::values))
}

fn keys(value: &Value) -> impl Iterator<Item = &str> {
    value.as_object().into_iter().flat_map(Map::keys).map(String::as_str)
}

/// Kubernetes' name of a field that is written as in its Python client.
fn camel_case(name: &str) -> String {
    let mut words = name.split('_').filter(|word| !word.is_empty());
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |name, word| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        name + &first.into_iter().chain(letters).collect::<String>()
    })
}

use serde_json::{Map, Value, json};

use crate::grants;
use crate::groups::Groups;
use crate::hub_names::HubNames;
use crate::migration::{Migration, Target};
use crate::report::{Entry, Outcome, Report};
use crate::values_file::{ValuesFile, below};

/// A configuration in the making, and the report about it.
pub(crate) struct Draft<'a> {
    files: &'a [ValuesFile],
    /// The key below which each file has the chart's values.
    roots: Vec<String>,
    target: &'a Target,
    /// KubeSpawner's settings for every lab.
    pub(crate) kubespawner: Map<String, Value>,
    /// The other keys of the policy's configuration.
    pub(crate) policy: Map<String, Value>,
    /// The configuration of the service, without the policy.
    pub(crate) service: Value,
    /// The volume that was called by a template, and its name here.
    pub(crate) renamed: Option<(String, String)>,
    /// The names of volumes that could not be carried over.
    pub(crate) left_out: Vec<String>,
    /// True if a container with iptables kept labs from the metadata of the cloud's machines.
    pub(crate) blocks_metadata: bool,
    /// The groups of every lab.
    pub(crate) groups: Groups,
    /// The names of the Hub's objects.
    pub(crate) hub: HubNames,
    /// Rules for what the Hub, and its proxy, may connect to.
    pub(crate) hub_egress: Vec<Value>,
    pub(crate) proxy_egress: Vec<Value>,
    report: Report,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(files: &'a [ValuesFile], roots: Vec<String>, target: &'a Target) -> Self {
        let namespace = &target.namespace;
        let service = json!({
            "auth": {
                "modes": ["jupyterhub"],
                "jupyterhub": {
                    "api_url": format!("http://hub.{namespace}:8081/hub/api"),
                    "services": {"wasmspawner-hub": ["admin:jupyterhub"]}
                },
                "identities": {"default": {"uid": 1000, "gid": 100, "groups": [{"name": "users", "id": 100}]}}
            },
            "kubernetes": {"namespace": target.service_namespace, "namespaces": "single"},
            "names": {"hub_namespace": namespace, "namespace": namespace},
            "lab": {"network_policy": {"hub_namespace": namespace}}
        });
        Self {
            files,
            roots,
            target,
            kubespawner: Map::new(),
            policy: Map::new(),
            service,
            renamed: None,
            left_out: Vec::new(),
            blocks_metadata: false,
            groups: Groups::default(),
            hub: HubNames::default(),
            hub_egress: Vec::new(),
            proxy_egress: Vec::new(),
            report: Report::default(),
        }
    }

    /// Sets a key of the service's configuration, such as `lab.labels`.
    pub(crate) fn set_service(&mut self, path: &str, value: Value) {
        set(&mut self.service, path, value);
    }

    /// Names the Hub as its chart does.
    pub(crate) fn set_hub(&mut self, names: HubNames) {
        let api = format!("http://{}.{}:8081/hub/api", names.object("hub"), self.target.namespace);
        self.set_service("auth.jupyterhub.api_url", api.into());
        self.hub = names;
    }

    /// Sets one of KubeSpawner's settings.
    pub(crate) fn set(&mut self, setting: &str, value: Value) {
        self.kubespawner.insert(setting.to_owned(), value);
    }

    /// Adds entries to a setting that is a list.
    pub(crate) fn extend(&mut self, setting: &str, entries: impl IntoIterator<Item = Value>) {
        let list = self.kubespawner.entry(setting).or_insert(Value::Null);
        let mut items = match list.take() {
            Value::Array(items) => items,
            _ => Vec::new(),
        };
        items.extend(entries);
        *list = Value::Array(items);
    }

    /// True if a file has the key, so that it is not only a default of the chart.
    pub(crate) fn is_given(&self, path: &str) -> bool {
        self.place(path).is_some()
    }

    fn place(&self, path: &str) -> Option<(String, u64)> {
        let files = || self.files.iter().zip(&self.roots).rev();
        let line = |path: &str| {
            files().find_map(|(file, root)| Some((file.name.clone(), file.line(&below(root, path))?)))
        };
        // An entry of a list has no key, and is found at that of the list.
        line(path).or_else(|| line(path.split_once(['[', ':'])?.0))
    }

    /// The number of entries in the report.
    pub(crate) fn reported(&self) -> usize {
        self.report.entries.len()
    }

    pub(crate) fn carried(&mut self, path: &str, to: &str) {
        self.carried_with(path, to, "");
    }

    pub(crate) fn carried_with(&mut self, path: &str, to: &str, note: &str) {
        self.add(path, Outcome::Carried { to: to.to_owned(), note: note.to_owned() });
    }

    pub(crate) fn stays(&mut self, path: &str, why: &str) {
        self.add(path, Outcome::Stays(why.to_owned()));
    }

    pub(crate) fn not_needed(&mut self, path: &str, why: &str) {
        self.add(path, Outcome::NotNeeded(why.to_owned()));
    }

    pub(crate) fn open(&mut self, path: &str, did: &str, ways: &str) {
        self.add(path, Outcome::Open { did: did.to_owned(), ways: ways.to_owned() });
    }

    /// Reports a value that is no text, list or map where the chart or KubeSpawner takes one.
    pub(crate) fn wrong_form(&mut self, path: &str) {
        self.open(
            path,
            "is not of the form that the chart and KubeSpawner take",
            "Look up what it was meant to do",
        );
    }

    fn add(&mut self, path: &str, outcome: Outcome) {
        let place = self.place(path);
        self.report.entries.push(Entry { path: path.to_owned(), place, outcome });
    }

    /// Reports what the files have beside the chart's values.
    pub(crate) fn other_roots(&mut self) {
        for (file, root) in self.files.iter().zip(&self.roots) {
            // Both the keys beside JupyterHub's chart, and those beside the chart of which it is a part.
            let (mut values, mut above) = (&file.values, String::new());
            for step in root.split('.').filter(|step| !step.is_empty()) {
                for key in values.as_object().into_iter().flat_map(Map::keys).filter(|key| *key != step) {
                    let path = below(&above, key);
                    let place = file.line(&path).map(|line| (file.name.clone(), line));
                    let outcome =
                        Outcome::Stays("belongs to another chart, and not to JupyterHub's".to_owned());
                    self.report.entries.push(Entry { path, place, outcome });
                }
                above = below(&above, step);
                values = &values[step];
            }
        }
    }

    pub(crate) fn finish(self) -> Migration {
        let Self { mut kubespawner, mut policy, service, target, mut report, roots, hub, .. } = self;
        let (hub_egress, proxy_egress) = (self.hub_egress, self.proxy_egress);
        kubespawner.retain(|_, value| !is_nothing(value));
        let grants = grants::needed(&kubespawner, policy.get("profile_list"));
        policy.insert("kubespawner".to_owned(), Value::Object(kubespawner));
        let entry = |path: Option<&str>| {
            let mut entry = json!({"name": "default"});
            if let Some(path) = path {
                entry["path"] = path.into();
            }
            if !grants.is_empty() {
                entry["grants"] = Value::Object(grants.clone());
            }
            entry["config"] = Value::Object(policy.clone());
            json!([entry])
        };
        let (config, of_chart) = with_policy(service, &target.policy, entry);
        let mut chart_values = json!({
            "podLabels": {"hub.jupyter.org/network-access-hub": "true"},
            "jupyterhub": {"namespace": target.namespace},
            "config": of_chart
        });
        if !hub.has_usual_app() {
            chart_values["jupyterhub"]["podLabels"] = json!({"app": hub.app, "component": "hub"});
        }
        report.keep_last_outcomes();
        let root = roots.into_iter().next_back().unwrap_or_default();
        let hub_secret = hub.object("hub");
        Migration { config, chart_values, report, root, hub_secret, hub_egress, proxy_egress }
    }
}

/// Sets a key of a map, such as `lab.labels`.
pub(crate) fn set(map: &mut Value, path: &str, value: Value) {
    let mut at = map;
    for step in path.split('.') {
        at = &mut at[step];
    }
    *at = value;
}

/// Returns the configuration with its policy, and the part of it that is in the values of the service's chart. `entry` makes
/// the entry of the policy, with the path of its component if there is one.
pub(crate) fn with_policy(
    service: Value,
    policy: &str,
    entry: impl Fn(Option<&str>) -> Value,
) -> (Value, Value) {
    let mut config = service.clone();
    config["policies"] = entry(Some(policy));
    let mut of_chart = service;
    of_chart["policies"] = entry(None);
    // The chart sets it.
    if let Some(kubernetes) = of_chart["kubernetes"].as_object_mut() {
        kubernetes.remove("namespace");
    }
    (config, of_chart)
}

/// True for a value that has no effect.
pub(crate) fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(entries) => entries.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::target::NubladoTarget;
use crate::draft::{set, with_policy};
use crate::migration::Migration;
use crate::report::{Entry, Outcome, Report};
use crate::values_file::{ValuesFile, below};

/// The names of a lab's objects in Nublado.
const OBJECTS: &str = "{user_server}-nb";

/// An address of the documentation, in place of those of the ingress.
const NO_INGRESS: &str = "192.0.2.10";

/// A configuration in the making, and the report about it.
pub(super) struct Reader<'a> {
    files: &'a [ValuesFile],
    pub(super) target: &'a NubladoTarget,
    /// The configuration of the service, without the policy.
    pub(super) service: Value,
    /// The policy's sections.
    pub(super) policy: Value,
    /// Values of the service's chart beside its configuration.
    pub(super) chart: Value,
    /// The grants that the policy needs.
    pub(super) grants: Grants,
    /// The URL at which the site's Repertoire says where its services are.
    pub(super) discovery: Option<String>,
    report: Report,
}

/// The grants that the policy needs.
#[derive(Default)]
pub(super) struct Grants {
    pub(super) privileged_init: bool,
    pub(super) affinity: bool,
    pub(super) host_path: BTreeSet<String>,
    pub(super) metadata: BTreeSet<String>,
}

impl<'a> Reader<'a> {
    pub(super) fn new(files: &'a [ValuesFile], target: &'a NubladoTarget) -> Self {
        let peers = if target.ingress.is_empty() { json!([NO_INGRESS]) } else { json!(target.ingress) };
        let service = json!({
            "auth": {
                "modes": ["headers"],
                "headers": {
                    "url": target.gafaelfawr,
                    "trusted_peers": peers,
                    "implied_scopes": [],
                    "user_scopes": {"bot-jupyterhub": ["admin:jupyterhub"]}
                }
            },
            // Nublado always pulls images in advance, on the nodes of labs.
            "images": {"nodes": {}, "prepull": {}},
            "kubernetes": {"namespace": target.service_namespace},
            // As Nublado calls them, so that whoever looks for a user's claims finds them where they were.
            "names": {
                "hub_namespace": target.namespace,
                "pod": OBJECTS,
                "pvc": format!("{OBJECTS}-pvc"),
                "object_prefix": OBJECTS,
                "service_account": OBJECTS
            },
            // Volumes keep their groups, unless `fsGroupPrimary` is on.
            "lab": {"fs_group": {"group": "none"}, "network_policy": {"hub_namespace": target.namespace}}
        });
        let chart = json!({
            "jupyterhub": {"namespace": target.namespace},
            "policyFiles": {"rubin": {"bundled": "rubin.wasm"}},
            "gafaelfawr": {"enabled": true}
        });
        Self {
            files,
            target,
            service,
            policy: json!({"lab": {"labSecretName": OBJECTS}}),
            chart,
            grants: Grants::default(),
            discovery: None,
            report: Report::default(),
        }
    }

    /// Sets a key of the service's configuration, such as `lab.files`.
    pub(super) fn set_service(&mut self, key: &str, value: Value) {
        set(&mut self.service, key, value);
    }

    /// Sets a key of the policy's configuration, such as `lab.sizes`.
    pub(super) fn set_policy(&mut self, key: &str, value: Value) {
        set(&mut self.policy, key, value);
    }

    /// Sets a key of the chart's values.
    pub(super) fn set_chart(&mut self, key: &str, value: Value) {
        set(&mut self.chart, key, value);
    }

    /// Sets a variable of all labs.
    pub(super) fn set_env(&mut self, name: &str, value: Value) {
        self.policy["lab"]["env"][name] = value;
    }

    pub(super) fn carried(&mut self, path: &str, to: &str, note: &str) {
        self.add(path, Outcome::Carried { to: to.to_owned(), note: note.to_owned() });
    }

    pub(super) fn stays(&mut self, path: &str, why: &str) {
        self.add(path, Outcome::Stays(why.to_owned()));
    }

    pub(super) fn not_needed(&mut self, path: &str, why: &str) {
        self.add(path, Outcome::NotNeeded(why.to_owned()));
    }

    pub(super) fn open(&mut self, path: &str, did: &str, ways: &str) {
        self.add(path, Outcome::Open { did: did.to_owned(), ways: ways.to_owned() });
    }

    pub(super) fn unknown(&mut self, path: &str) {
        self.open(
            path,
            "is no key of Nublado 15 that this program knows, and is left out",
            "Correct it, or find its counterpart in `wasmspawner schema` and in the page of the policy `rubin`",
        );
    }

    pub(super) fn other_form(&mut self, path: &str) {
        self.open(path, "has another form than Nublado 15 reads, and is left out", "Correct it");
    }

    /// Returns the entries of a map, with their paths. Reports a value without entries.
    pub(super) fn entries<'v>(&mut self, path: &str, value: &'v Value) -> Vec<(String, &'v str, &'v Value)> {
        match value {
            Value::Object(entries) if entries.is_empty() => {
                self.not_needed(path, "has no value");
                Vec::new()
            }
            Value::Object(entries) => {
                entries.iter().map(|(key, value)| (below(path, key), key.as_str(), value)).collect()
            }
            _ => {
                self.other_form(path);
                Vec::new()
            }
        }
    }

    fn add(&mut self, path: &str, outcome: Outcome) {
        let line =
            |path: &str| self.files.iter().rev().find_map(|file| Some((file.name.clone(), file.line(path)?)));
        // An entry of a list has no key, and is found at that of the list.
        let place = line(path).or_else(|| line(path.split_once('[')?.0));
        self.report.entries.push(Entry { path: path.to_owned(), place, outcome });
    }

    pub(super) fn finish(mut self) -> Migration {
        if self.target.ingress.is_empty() {
            self.open(
                "auth.headers.trusted_peers",
                "of the new configuration has an address of the documentation, because no value says from which addresses the ingress connects",
                "Write the addresses of the ingress's pods, or convert again with `--ingress ADDRESS`",
            );
        }
        let grants = self.grants.value();
        let entry = |path: Option<&str>| {
            let mut entry = json!({"name": "rubin", "grants": grants, "config": self.policy});
            if let Some(path) = path {
                entry["path"] = path.into();
            }
            if let Some(url) = &self.discovery {
                entry["data"] = json!({"discovery": {"url": url, "every": "5m"}});
            }
            json!([entry])
        };
        let (config, of_chart) = with_policy(self.service, &self.target.policy, entry);
        let mut chart_values = self.chart;
        chart_values["config"] = of_chart;
        self.report.keep_last_outcomes();
        Migration {
            config,
            chart_values,
            report: self.report,
            root: String::new(),
            hub_secret: String::new(),
            hub_egress: Vec::new(),
            proxy_egress: Vec::new(),
        }
    }
}

impl Grants {
    fn value(&self) -> Value {
        // The user's token is a variable of the lab.
        let mut grants = Map::from_iter([("secrets".to_owned(), json!([OBJECTS]))]);
        if self.privileged_init {
            grants.insert("privileged-init".to_owned(), true.into());
        }
        if self.affinity {
            grants.insert("pod-patch".to_owned(), json!(["spec.affinity"]));
        }
        for (name, list) in [("host-path", &self.host_path), ("metadata", &self.metadata)] {
            if !list.is_empty() {
                grants.insert(name.to_owned(), json!(list));
            }
        }
        grants.into()
    }
}

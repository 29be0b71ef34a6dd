use std::collections::BTreeMap;

use serde_json::Value;
use wasmspawner_sdk::lab_server::{self as server, Probe};
use wasmspawner_sdk::pod::{
    ClaimSource, ClaimTemplate, Customization, EnvValue, EnvVar, InitContainer, Mount, TimeLimits,
    Toleration, Volume, VolumeSource,
};
use wasmspawner_sdk::{Error, Image, Pair, Section};

use super::change::Change;
use super::items::Items;
use super::pod_parts::PodParts;
use super::settings::{self, Settings};
use super::{amount, kubernetes, refused};
use crate::storage::{self, Storage};
use crate::{env, lab_server, template};

/// A text of an override.
pub(super) struct Written<'a> {
    /// The key of the override.
    pub(super) key: &'static str,
    pub(super) reading: Reading,
    pub(super) text: &'a mut String,
}

/// The kind of template fields that are expanded in a text, and the permission to type a part of the text.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reading {
    /// No fields are expanded. A user may type a part of it.
    Plain,
    /// This policy expands fields. A user may type a part of it.
    Template,
    /// This policy expands fields as JupyterHub does. A user may type a part of it.
    Hub,
    /// This policy expands fields. The whole text is the operator's.
    Site,
    /// The service expands fields. The whole text is the operator's.
    Service,
}

impl Reading {
    pub(super) fn may_be_typed(self) -> bool {
        matches!(self, Self::Plain | Self::Template | Self::Hub)
    }
}

struct Texts<'a>(Vec<Written<'a>>);

impl<'a> Texts<'a> {
    fn add(&mut self, key: &'static str, reading: Reading, texts: impl IntoIterator<Item = &'a mut String>) {
        self.0.extend(texts.into_iter().map(|text| Written { key, reading, text }));
    }
}

fn literal(value: &mut EnvValue) -> Option<&mut String> {
    match value {
        EnvValue::Literal(text) => Some(text),
        EnvValue::SecretRef(_) | EnvValue::FieldRef(_) => None,
    }
}

/// A `kubespawner_override`. Maps are merged into earlier ones, where `null` removes an entry; all other values replace
/// earlier ones.
#[derive(Clone, Default)]
pub(super) struct Overrides {
    image: Option<String>,
    cpu_limit: Change<u64>,
    cpu_guarantee: Change<u64>,
    memory_limit: Change<u64>,
    memory_guarantee: Change<u64>,
    extended: BTreeMap<String, Option<u64>>,
    pub(super) env: BTreeMap<String, Option<EnvValue>>,
    pub(super) settings: Settings,
    labels: BTreeMap<String, Option<String>>,
    annotations: BTreeMap<String, Option<String>>,
    node_selector: BTreeMap<String, Option<String>>,
    tolerations: Items<Toleration>,
    volumes: Items<Volume>,
    mounts: Items<Mount>,
    init_containers: Items<InitContainer>,
    pub(super) pod_parts: PodParts,
    pub(super) command: Change<Vec<String>>,
    pub(super) args: Change<Vec<String>>,
    working_dir: Change<String>,
    start_timeout: Change<u32>,
    port: Change<u16>,
    probe: Change<Probe>,
}

impl Overrides {
    pub(super) fn read(entry: &mut Section<'_>) -> Self {
        refused::refuse_claim(entry);
        Self::read_any(entry)
    }

    fn read_any(entry: &mut Section<'_>) -> Self {
        refused::refuse(entry);
        if entry.has("default") {
            entry.optional::<Value>("default");
            let none =
                "has no effect in an override, as in KubeSpawner; write it beside `kubespawner_override`";
            entry.warning("default", none);
        }
        let overrides = Self {
            image: entry.optional("image"),
            cpu_limit: amount(entry, "cpu_limit", amount::cpu_millis).unless(&0),
            cpu_guarantee: amount(entry, "cpu_guarantee", amount::cpu_millis).unless(&0),
            memory_limit: amount(entry, "mem_limit", amount::bytes).unless(&0),
            memory_guarantee: amount(entry, "mem_guarantee", amount::bytes).unless(&0),
            extended: extended(entry),
            env: environment(entry),
            settings: Settings::read(entry),
            labels: entry.or_default("extra_labels"),
            annotations: entry.or_default("extra_annotations"),
            node_selector: entry.or_default("node_selector"),
            tolerations: Items::read(entry, "tolerations", kubernetes::toleration),
            volumes: Items::read(entry, "volumes", kubernetes::volume),
            mounts: Items::read(entry, "volume_mounts", kubernetes::mount),
            init_containers: Items::read(entry, "init_containers", kubernetes::init_container),
            pod_parts: PodParts::read(entry),
            command: Change::given(entry.has("cmd"), command(entry, "cmd")),
            args: Change::read(entry, "args"),
            working_dir: Change::read(entry, "working_dir"),
            start_timeout: Change::read(entry, "start_timeout"),
            port: Change::read(entry, "port"),
            probe: Change::given(entry.has("probe"), lab_server::probe(entry)),
        };
        for (guarantee, limit, key) in [
            (&overrides.cpu_guarantee, &overrides.cpu_limit, "cpu_guarantee"),
            (&overrides.memory_guarantee, &overrides.memory_limit, "mem_guarantee"),
        ] {
            if let (Some(guarantee), Some(limit)) = (guarantee.value(), limit.value())
                && guarantee > limit
            {
                entry.problem(key, "is more than the limit");
            }
        }
        overrides
    }

    /// The service account of labs, and nothing else.
    pub(super) fn of_account(name: String) -> Self {
        Self { pod_parts: PodParts::of_account(name), ..Self::default() }
    }

    /// Reads the settings of every lab of the site, which may say how the lab's claim is made.
    pub(super) fn read_site(entry: &mut Section<'_>, site: &Storage) -> Self {
        let claim = kubernetes::claim_template(entry);
        let mut settings = Self::read_any(entry);
        settings.check_templates(entry);
        if let Some(claim) = claim {
            settings.make_claims(&claim);
        }
        settings.check_volumes(entry, site);
        settings
    }

    /// Reads overrides that contain no typed value.
    pub(super) fn read_listed(entry: &mut Section<'_>) -> Self {
        let mut overrides = Self::read(entry);
        overrides.check_templates(entry);
        overrides
    }

    /// Checks that every volume exists that the mounts of a lab with these overrides use, and warns if a claim of the site
    /// is missing there.
    pub(super) fn check_volumes(&self, entry: &mut Section<'_>, site: &Storage) {
        let lab = self.applied_to(site);
        let is_there = |name: &str| lab.volumes.iter().any(|volume| volume.name == name);
        let key = match (&self.mounts, &self.volumes, &self.init_containers) {
            (Items::Replace(_) | Items::Add(_), _, _) => "volume_mounts",
            (_, Items::Replace(_) | Items::Add(_), _) => "volumes",
            (_, _, Items::Replace(_) | Items::Add(_)) => "init_containers",
            _ => return,
        };
        let of_inits = self.init_containers.items().iter().flat_map(|init| &init.mounts);
        for mount in lab.mounts.iter().chain(of_inits).filter(|mount| !is_there(&mount.volume)) {
            let problem = format!(
                "there is no volume `{}` for the mount at {}; a list in `volumes` replaces that of the site, so repeat what \
                 is still needed, or write a map, which is added",
                mount.volume, mount.path
            );
            entry.problem(key, problem);
        }
        let is_claim = |volume: &&Volume| matches!(volume.source, VolumeSource::Claim(_));
        for gone in site.volumes.iter().filter(is_claim).filter(|volume| !is_there(&volume.name)) {
            let warning = format!(
                "leaves out the volume `{}`, which labs have without this profile; repeat it, or write a map, which is added \
                 to the site's volumes",
                gone.name
            );
            entry.warning("volumes", &warning);
        }
    }

    /// The storage of a lab that had `site` before.
    pub(super) fn applied_to(&self, site: &Storage) -> Storage {
        let mut lab = Customization {
            volumes: site.volumes.clone(),
            mounts: site.mounts.clone(),
            ..Customization::default()
        };
        self.apply(&mut lab);
        Storage { volumes: lab.volumes, mounts: lab.mounts }
    }

    /// Sets how the claims of these overrides are made that labs have of their own.
    pub(super) fn make_claims(&mut self, template: &ClaimTemplate) {
        for volume in self.volumes.items_mut() {
            if let VolumeSource::Claim(claim) = &mut volume.source
                && claim.claim_name.contains("{pvc_name}")
            {
                claim.create = Some(template.clone());
            }
        }
    }

    /// Applies the overrides to a lab, except those that are decided by all chosen overrides together.
    pub(super) fn apply(&self, lab: &mut Customization) {
        if let Some(reference) = &self.image {
            lab.image = Some(Image::new(reference));
        }
        self.apply_resources(lab);
        for (name, value) in &self.env {
            match value {
                Some(value) => env::set(&mut lab.env, EnvVar { name: name.clone(), value: value.clone() }),
                None => lab.env.retain(|variable| variable.name != *name),
            }
        }
        merge(&mut lab.labels, &self.labels);
        merge(&mut lab.annotations, &self.annotations);
        merge(&mut lab.node_selector, &self.node_selector);
        self.tolerations.apply(&mut lab.tolerations, |_, _| false);
        let before = lab.volumes.clone();
        self.volumes.apply(&mut lab.volumes, |one, other| one.name == other.name);
        keep_claims_made(&before, &mut lab.volumes);
        self.mounts.apply(&mut lab.mounts, |one, other| one.path == other.path);
        self.init_containers.apply(&mut lab.init_containers, |one, other| one.name == other.name);
        self.working_dir.apply(&mut lab.working_dir);
        let mut limits = lab.time_limits.unwrap_or(TimeLimits { spawn_seconds: None, delete_seconds: None });
        self.start_timeout.apply(&mut limits.spawn_seconds);
        if limits.spawn_seconds.is_some() || lab.time_limits.is_some() {
            lab.time_limits = Some(limits);
        }
    }

    /// Applies the overrides to the port and the probe of the lab's program.
    pub(super) fn apply_to_server(&self, settings: &mut server::Settings) {
        self.port.apply(&mut settings.port);
        self.probe.apply(&mut settings.probe);
    }

    fn apply_resources(&self, lab: &mut Customization) {
        let resources = lab.resources.get_or_insert_default();
        self.cpu_limit.apply(&mut resources.cpu_limit_millis);
        self.cpu_guarantee.apply(&mut resources.cpu_request_millis);
        self.memory_limit.apply(&mut resources.memory_limit_bytes);
        self.memory_guarantee.apply(&mut resources.memory_request_bytes);
        for (name, amount) in &self.extended {
            resources.extended.retain(|(known, _)| known != name);
            resources.extended.extend(amount.map(|amount| (name.clone(), amount)));
        }
    }

    /// All texts that may differ between labs.
    pub(super) fn texts(&mut self) -> Vec<Written<'_>> {
        let mut texts = Texts(Vec::new());
        texts.add("image", Reading::Plain, &mut self.image);
        texts.add("environment", Reading::Template, self.env.values_mut().flatten().filter_map(literal));
        for (key, text) in self.settings.texts() {
            texts.add(key, Reading::Hub, [text]);
        }
        texts.add("extra_labels", Reading::Template, self.labels.values_mut().flatten());
        texts.add("extra_annotations", Reading::Template, self.annotations.values_mut().flatten());
        texts.add("node_selector", Reading::Plain, self.node_selector.values_mut().flatten());
        texts.add("cmd", Reading::Plain, self.command.value_mut().into_iter().flatten());
        texts.add("args", Reading::Plain, self.args.value_mut().into_iter().flatten());
        texts.add("working_dir", Reading::Template, self.working_dir.value_mut());
        for mount in self.mounts.items_mut() {
            texts.add("volume_mounts", Reading::Site, [&mut mount.path]);
            texts.add("volume_mounts", Reading::Service, &mut mount.sub_path);
        }
        for init in self.init_containers.items_mut() {
            let words = init.command.iter_mut().chain(&mut init.args);
            texts.add("init_containers", Reading::Site, words.chain([&mut init.image]));
            let literals = init.env.iter_mut().filter_map(|variable| literal(&mut variable.value));
            texts.add("init_containers", Reading::Site, literals);
            for mount in &mut init.mounts {
                texts.add("init_containers", Reading::Site, [&mut mount.path]);
                texts.add("init_containers", Reading::Service, &mut mount.sub_path);
            }
        }
        for (key, text) in self.pod_parts.texts() {
            texts.add(key, Reading::Site, [text]);
        }
        let volumes = self.volumes.items_mut().iter_mut();
        texts.add("volumes", Reading::Service, volumes.filter_map(storage::name));
        texts.0
    }

    /// Reports texts that are not valid templates.
    pub(super) fn check_templates(&mut self, entry: &Section<'_>) {
        for text in self.texts().iter().filter(|text| text.reading != Reading::Plain) {
            entry.check_template(text.key, text.text);
        }
    }

    /// The same overrides with the lab's fields expanded.
    pub(super) fn filled(&self) -> Result<Self, Error> {
        let mut filled = self.clone();
        for text in filled.texts() {
            match text.reading {
                Reading::Template | Reading::Site => template::fill(text.text)?,
                Reading::Hub => settings::fill(text.text)?,
                Reading::Plain | Reading::Service => {}
            }
        }
        Ok(filled)
    }

    /// Marks each label of the node selector whose value is `typed` as removed, as `null` does.
    pub(super) fn remove_labels_of_nodes(&mut self, typed: impl Fn(&str) -> bool) {
        for value in self.node_selector.values_mut().filter(|value| value.as_deref().is_some_and(&typed)) {
            *value = None;
        }
    }

    pub(super) fn image(&self) -> Option<&str> {
        self.image.as_deref()
    }
}

/// Keeps the creation of claims. KubeSpawner creates a lab's claim whatever volumes the lab has, but in this policy the
/// volume defines how its claim is created. If a profile replaces the volumes and refers to the same claim, the claim
/// is still created as before.
fn keep_claims_made(before: &[Volume], volumes: &mut [Volume]) {
    let claim = |volume: &Volume| match &volume.source {
        VolumeSource::Claim(claim) => Some(claim.clone()),
        _ => None,
    };
    let before: Vec<ClaimSource> = before.iter().filter_map(claim).collect();
    for volume in volumes {
        if let VolumeSource::Claim(claim) = &mut volume.source
            && claim.create.is_none()
        {
            let same = before.iter().find(|same| same.claim_name == claim.claim_name);
            claim.create = same.and_then(|same| same.create.clone());
        }
    }
}

fn amount(entry: &mut Section<'_>, key: &'static str, parse: fn(&str) -> Result<u64, String>) -> Change<u64> {
    Change::given(entry.has(key), entry.parsed(key, parse))
}

/// A program with its arguments. A text means a program without arguments.
fn command(entry: &mut Section<'_>, key: &'static str) -> Option<Vec<String>> {
    let value: Value = entry.optional(key)?;
    let words = match &value {
        Value::String(program) => Some(vec![program.clone()]),
        Value::Array(words) => words.iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    if words.is_none() {
        entry.problem(key, "must be a list of texts, or one text");
    }
    words
}

fn environment(entry: &mut Section<'_>) -> BTreeMap<String, Option<EnvValue>> {
    let mut variables = BTreeMap::new();
    for (name, given) in entry.or_default::<BTreeMap<String, Value>>("environment") {
        let value = kubernetes::env_value(&name, &given);
        if value.is_none() && !given.is_null() {
            let problem = format!(
                "`{name}` must be a text, a number, or {{valueFrom: ...}} with a secretKeyRef or a fieldRef"
            );
            entry.problem("environment", problem);
        }
        variables.insert(name, value);
    }
    variables
}

/// Reads the extended resources. Kubernetes requires guarantee and limit of an extended resource to be the same.
fn extended(entry: &mut Section<'_>) -> BTreeMap<String, Option<u64>> {
    let mut amounts = counts(entry, "extra_resource_limits");
    for (name, guarantee) in counts(entry, "extra_resource_guarantees") {
        if amounts.get(&name).is_some_and(|limit| *limit != guarantee) {
            let problem = format!("`{name}` must be the same as in `extra_resource_limits`");
            entry.problem("extra_resource_guarantees", problem);
        }
        amounts.insert(name, guarantee);
    }
    amounts
}

fn counts(entry: &mut Section<'_>, key: &'static str) -> BTreeMap<String, Option<u64>> {
    let mut counts = BTreeMap::new();
    for (name, given) in entry.or_default::<BTreeMap<String, Value>>(key) {
        let count = match &given {
            Value::String(text) => text.parse().ok(),
            other => other.as_u64(),
        };
        if !name.contains('/') {
            let problem = format!(
                "`{name}` is not an extended resource, such as nvidia.com/gpu; a policy of your own with the grant \
                 `pod-patch` can set it"
            );
            entry.problem(key, problem);
        } else if count.is_none() && !given.is_null() {
            entry.problem(key, format!("`{name}` must be a whole number"));
        }
        counts.insert(name, count);
    }
    counts
}

fn merge(pairs: &mut Vec<Pair>, changes: &BTreeMap<String, Option<String>>) {
    for (name, value) in changes {
        pairs.retain(|pair| pair.name != *name);
        pairs.extend(value.as_ref().map(|value| Pair::new(name, value)));
    }
}

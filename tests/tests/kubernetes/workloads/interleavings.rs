//! Labs come and go in random order with every change that others make to the workload, while the service is killed and
//! started again. A twin of each workload gets the same changes and no lab. At the end the two must be the same.
//!
//! `WORKLOAD_SCHEDULES` sets the number of schedules; `make workloads` runs 500.

use futures::future::join_all;
use k8s_openapi::api::apps::v1::ReplicaSet;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use kube::api::{Api, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use wasmspawner_tests::kubernetes::SKIPPED;

use super::shop::{Shop, deployment, server};
use crate::labs::{assert_permitted, gone};
use crate::site::{CLUSTER_WIDE, Site, until_within_a_minute};

/// The number of workloads that are changed at the same time.
const AT_ONCE: usize = 8;

/// A sequence of numbers that a seed determines (`SplitMix64`).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`.
    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }
}

/// The earlier states of a workload.
#[derive(Clone, Default)]
struct History {
    templates: Vec<PodTemplateSpec>,
    /// The labs that a rollback has brought back.
    brought_back: Vec<String>,
}

/// A possible next change of a workload.
#[derive(Debug, Clone, Copy)]
enum Act {
    PutIn,
    TakeOut,
    /// Sets another image, with `kubectl set image`.
    Image,
    /// Applies the owner's own version, with server-side apply.
    Apply,
    /// Reads the workload, changes it, and writes all of it.
    Write,
    /// Rolls back to an earlier template, with or without a lab.
    RollBack,
    Scale,
}

const ACTS: [Act; 10] = [
    Act::PutIn,
    Act::PutIn,
    Act::PutIn,
    Act::TakeOut,
    Act::TakeOut,
    Act::Image,
    Act::Apply,
    Act::Write,
    Act::RollBack,
    Act::Scale,
];

#[tokio::test(flavor = "multi_thread")]
async fn in_whatever_order_things_happen_a_workload_is_afterwards_as_without_labs() {
    let Some(site) = Site::enter(CLUSTER_WIDE).await else { return println!("{SKIPPED}") };
    let schedules = std::env::var("WORKLOAD_SCHEDULES").ok().and_then(|text| text.parse().ok()).unwrap_or(16);
    let seed = std::env::var("SEED").ok().and_then(|text| text.parse().ok()).unwrap_or_else(now);
    println!("SEED={seed} gives these schedules again");
    let mut shop = Shop::open_for_all(&site).await;
    let mut random = Random(seed);
    let mut done = 0;
    while done < schedules {
        let names: Vec<String> = (0..AT_ONCE).map(|at| format!("s{}", done + at)).collect();
        join_all(names.iter().map(|name| begin(&shop, name))).await;
        let mut histories = vec![History::default(); AT_ONCE];
        for _ in 0..3 {
            let seeds: Vec<u64> = (0..AT_ONCE).map(|_| random.next()).collect();
            let rounds = names.iter().zip(&mut histories).zip(seeds);
            join_all(rounds.map(|((name, history), seed)| act(&shop, name, history, seed))).await;
            if random.below(2) == 0 {
                shop.service.crash_and_restart().await.unwrap();
            }
        }
        join_all(names.iter().zip(&histories).map(|(name, history)| end(&shop, name, history))).await;
        done += AT_ONCE;
    }
    assert_permitted(&shop.service);
    site.leave().await;
}

fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_nanos() & u128::from(u64::MAX)).unwrap()
}

fn twin(name: &str) -> String {
    format!("{name}-twin")
}

async fn begin(shop: &Shop<'_>, name: &str) {
    for name in [name.to_owned(), twin(name)] {
        let object = serde_json::from_value(deployment(&name, 1)).unwrap();
        shop.deployments().create(&PostParams::default(), &object).await.unwrap();
    }
}

/// Makes a few random changes to a workload, without waiting for the end of any.
async fn act(shop: &Shop<'_>, name: &str, history: &mut History, seed: u64) {
    let mut random = Random(seed);
    let user = shop.service.user(name).unwrap();
    for _ in 0..2 + random.below(4) {
        let act = ACTS[random.below(ACTS.len())];
        let number = random.below(100);
        match act {
            Act::PutIn => {
                let body = json!({ "user_string": shop.user_string(name, "deployment", name) });
                let answer = user.spawn_with(name, &body).await.unwrap();
                assert!([303, 409, 429].contains(&answer.status), "{answer:?}");
            }
            Act::TakeOut => {
                let answer = user.stop(&server(name, "deployment", &shop.namespace, name)).await.unwrap();
                assert!([202, 404, 409].contains(&answer.status), "{answer:?}");
            }
            Act::RollBack => {
                if let Some(template) =
                    history.templates.get(number % history.templates.len().max(1)).cloned()
                {
                    history.brought_back.extend(marks(&serde_json::to_value(&template).unwrap()));
                    write(shop, name, template.clone()).await;
                    write(shop, &twin(name), as_twin(without_labs(template), name)).await;
                }
            }
            Act::Image | Act::Apply | Act::Write | Act::Scale => {
                change(shop, name, act, number).await;
                change(shop, &twin(name), act, number).await;
            }
        }
        history.templates.push(shop.get(name).await.spec.unwrap().template);
    }
}

async fn change(shop: &Shop<'_>, name: &str, act: Act, number: usize) {
    let api = shop.deployments();
    let by_owner = PatchParams { field_manager: Some("owner".to_owned()), ..PatchParams::default() };
    let containers = json!([{ "name": "web", "image": format!("web:{number}") }]);
    match act {
        Act::Image => {
            let patch = json!({ "spec": { "template": { "spec": { "containers": containers } } } });
            api.patch(name, &by_owner, &Patch::Strategic(patch)).await.unwrap();
        }
        Act::Apply => {
            let mut object = deployment(name, 1);
            object["spec"].as_object_mut().unwrap().remove("replicas");
            object["spec"]["template"]["spec"]["containers"][0]["env"] =
                json!([{ "name": "NUMBER", "value": number.to_string() }]);
            api.patch(name, &PatchParams::apply("argocd").force(), &Patch::Apply(object)).await.unwrap();
        }
        Act::Write => loop {
            let mut object = api.get(name).await.unwrap();
            let spec = object.spec.as_mut().unwrap();
            let metadata = spec.template.metadata.get_or_insert_default();
            metadata.annotations.get_or_insert_default().insert("number".to_owned(), number.to_string());
            match api.replace(name, &PostParams::default(), &object).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                written => {
                    written.unwrap();
                    break;
                }
            }
        },
        Act::Scale => {
            let patch = json!({ "spec": { "replicas": number % 3 } });
            api.patch(name, &by_owner, &Patch::Strategic(patch)).await.unwrap();
        }
        Act::PutIn | Act::TakeOut | Act::RollBack => {}
    }
}

/// Writes the whole template, as `kubectl rollout undo` does.
async fn write(shop: &Shop<'_>, name: &str, template: PodTemplateSpec) {
    let mut template = serde_json::to_value(template).unwrap();
    template["$patch"] = "replace".into();
    let patch = Patch::Strategic(json!({ "spec": { "template": template } }));
    shop.deployments().patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// The template as it would be without any lab.
fn without_labs(mut template: PodTemplateSpec) -> PodTemplateSpec {
    let of_lab = |key: &String| {
        ["lab.", "injected.", ""].iter().any(|kind| key.starts_with(&format!("{kind}wasmspawner.io/")))
    };
    if let Some(metadata) = &mut template.metadata {
        for map in [&mut metadata.labels, &mut metadata.annotations] {
            if let Some(entries) = map {
                entries.retain(|key, _| !of_lab(key));
            }
            if map.as_ref().is_some_and(std::collections::BTreeMap::is_empty) {
                *map = None;
            }
        }
    }
    let spec = template.spec.as_mut().unwrap();
    spec.containers.retain(|container| !container.name.starts_with("lab-"));
    spec.volumes = None;
    spec.image_pull_secrets = None;
    template
}

fn as_twin(mut template: PodTemplateSpec, name: &str) -> PodTemplateSpec {
    let labels = template.metadata.as_mut().unwrap().labels.as_mut().unwrap();
    assert_eq!(labels.insert("app".to_owned(), twin(name)).as_deref(), Some(name));
    template
}

/// Stops the labs, and compares the workload with its twin. Parts of a lab that was gone and that a rollback has
/// brought back belong to the rollback, and are left out.
async fn end(shop: &Shop<'_>, name: &str, history: &History) {
    let user = shop.service.user(name).unwrap();
    let lab = server(name, "deployment", &shop.namespace, name);
    let status = user.stop(&lab).await.unwrap().status;
    assert!([202, 404].contains(&status), "{status}");
    let record = shop.record_of(name, "deployment", name);
    gone(&shop.site.spawns(), &record).await;
    let (with, without) = (shop.get(name).await, shop.get(&twin(name)).await);
    let template = |object: k8s_openapi::api::apps::v1::Deployment| object.spec.unwrap().template;
    let (replicas, of_twin) = (with.spec.as_ref().unwrap().replicas, without.spec.as_ref().unwrap().replicas);
    assert_eq!(replicas, of_twin, "{name}");
    let managers = with.metadata.managed_fields.clone().unwrap_or_default();
    let ours =
        |manager: &Option<String>| manager.as_deref().is_some_and(|name| name.starts_with("wasmspawner"));
    assert!(managers.iter().all(|entry| !ours(&entry.manager)), "{name}: {managers:#?}");
    let with = template(with);
    let left = marks(&serde_json::to_value(&with).unwrap());
    assert!(left.iter().all(|mark| history.brought_back.contains(mark)), "{name}: {left:?}");
    assert_eq!(as_twin(without_labs(with.clone()), name), template(without), "{name}");
    let revisions: Api<ReplicaSet> = Api::namespaced(shop.site.cluster.client.clone(), &shop.namespace);
    let of_service = ListParams::default().labels(&format!("app={name}"));
    let known = &history.brought_back;
    let is_ours = |revision: &ReplicaSet| {
        marks(&serde_json::to_value(&revision.spec).unwrap()).iter().any(|mark| !known.contains(mark))
    };
    let mut left = Vec::new();
    let none_left = until_within_a_minute(async || {
        left = revisions.list(&of_service).await.unwrap().items;
        left.retain(is_ours);
        left.is_empty()
    });
    let in_time = none_left.await;
    assert!(in_time, "{name}: {left:#?}");
}

/// The labs of which a template contains any part.
fn marks(template: &Value) -> Vec<String> {
    let text = template.to_string();
    let (labels, names) = (text.split("lab.wasmspawner.io/").skip(1), text.split("\"lab-").skip(1));
    labels.chain(names).filter_map(|part| part.get(..10)).map(str::to_owned).collect()
}

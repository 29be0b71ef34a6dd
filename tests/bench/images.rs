//! What images cost: the menu of a repository with 2,000 tags, and what 500 nodes with 20 wanted images are to pull.
//!
//! `cargo bench -p wasmspawner-tests --bench images`

use std::hint::black_box;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::Node;
use serde_json::{Value, json};
use wasmspawner_core::images::{
    Inventory, LabNode, Needs, NodeImages, NodeRules, PrepullLimits, PullHistory, Refresh, RepositoryImages,
    Tag, WantedImage, offer, plan, resolved,
};
use wasmspawner_core::policy::form::{FormContext, image_fields};
use wasmspawner_core::policy::{Action, AuthorizeRequest, Options, Subject, User};
use wasmspawner_core::values::digest::Digest;
use wasmspawner_policies::{Compiler, EngineOptions, Policies, PolicySpec};
use wasmspawner_registry::inventory::LiveInventory;
use wasmspawner_tests::guests;

const TAGS: usize = 2000;
const NODES: usize = 500;
const WANTED: usize = 20;
/// A kubelet reports so many images at most, unless it is told otherwise.
const LISTED: usize = 50;
const REPOSITORY: &str = "registry.example.org/site/lab";

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let tags = tags();
    let registries = inventory(&tags)?;
    plans(&tags, &registries)?;
    menus(&registries).await
}

/// The tags of a site that builds every day and every week.
fn tags() -> Vec<String> {
    let days = (2016..).flat_map(|year| {
        (1..=12).flat_map(move |month| (1..=28).map(move |day| format!("d_{year}_{month:02}_{day:02}")))
    });
    let weeks = (2016..).flat_map(|year| (1..=52).map(move |week| format!("w_{year}_{week:02}")));
    days.take(TAGS * 7 / 8).chain(weeks.take(TAGS / 8)).collect()
}

fn inventory(tags: &[String]) -> anyhow::Result<Inventory> {
    let tags: Vec<Tag> = tags.iter().map(|tag| Ok(Tag::parse(tag)?)).collect::<anyhow::Result<_>>()?;
    let digest = |tag: &Tag| (tag.clone(), Refresh::Digest(Digest::sha256(tag.as_str().as_bytes())));
    let digests = tags.iter().map(digest).collect();
    let images = resolved(&RepositoryImages::default(), tags, &digests, None, Timestamp::now());
    Ok(Inventory::default().with(REPOSITORY.parse()?, images))
}

/// What nodes are to pull. The reference is to ask the same nodes about the same images in the simplest way.
fn plans(tags: &[String], registries: &Inventory) -> anyhow::Result<()> {
    let wanted: Vec<WantedImage> = tags[..WANTED].iter().map(|tag| wanted(tag)).collect();
    let mut nodes = NodeImages::default();
    for number in 0..NODES {
        nodes.insert(format!("node-{number}"), node(tags, number)?);
    }
    let asked: Vec<Vec<String>> = (0..NODES).map(|number| names(tags, number)).collect();
    let reference = measure("reference: 10,000 searches of names", 50, || {
        let has = |names: &Vec<String>, tag: &String| names.iter().any(|name| name.ends_with(tag.as_str()));
        asked.iter().map(|names| tags[..WANTED].iter().filter(|tag| has(names, tag)).count()).sum::<usize>()
    });
    let limits = PrepullLimits {
        per_node: 1,
        at_once: 500,
        time_limit: SignedDuration::from_mins(10),
        hours: Vec::new(),
    };
    let (history, now) = (PullHistory::default(), Timestamp::now());
    let planned = measure("plan of 500 nodes and 20 images", 50, || {
        let needs = Needs::from_wanted(&wanted, registries, &nodes, &history, now);
        plan(&needs.missing, &[], &history, &nodes, &limits, now)
    });
    let changed = measure("one of 500 nodes has changed", 50, || {
        let mut nodes = nodes.clone();
        node(tags, 7).map(|node| nodes.insert("node-7".to_owned(), node)).map(|()| nodes)
    });
    ratio("plan", planned, reference);
    ratio("change of a node", changed, reference);
    Ok(())
}

fn wanted(tag: &str) -> WantedImage {
    WantedImage { reference: format!("{REPOSITORY}:{tag}"), node_selector: std::collections::BTreeMap::new() }
}

/// The names of images on a node: half of the wanted ones, and others.
fn names(tags: &[String], number: usize) -> Vec<String> {
    let has = |at: &usize| *at >= WANTED || (at + number).is_multiple_of(2);
    let named = |at: usize| format!("{REPOSITORY}@{}", Digest::sha256(tags[at].as_bytes()));
    (0..LISTED).filter(has).map(named).collect()
}

fn node(tags: &[String], number: usize) -> anyhow::Result<LabNode> {
    let images: Vec<Value> = names(tags, number).iter().map(|name| json!({ "names": [name] })).collect();
    let node: Node = serde_json::from_value(json!({ "status": { "images": images } }))?;
    Ok(LabNode::observed(&node, &NodeRules::default()))
}

/// Menus of `rubin`. The reference is the call of a policy that only says yes.
async fn menus(registries: &Inventory) -> anyhow::Result<()> {
    let program = env!("CARGO_BIN_EXE_wasmspawner-under-test").into();
    let compiler = Compiler { program, ..Compiler::default() };
    let inventory = LiveInventory::from_parts(registries.clone(), NodeImages::default());
    let options = EngineOptions { compiler, inventory, ..EngineOptions::default() };
    let source = json!({ "type": "docker", "registry": "registry.example.org", "repository": "site/lab" });
    let config = json!({
        "images": { "source": source },
        "lab": { "sizes": [{ "size": "small", "cpu": 1, "memory": "4Gi" }] },
    });
    let rubin = PolicySpec { config, ..PolicySpec::new("rubin", guests::component("policy-rubin")) };
    let door = PolicySpec {
        config: json!({ "deny": ["guests"] }),
        ..PolicySpec::new("door", guests::component("policy-deny-group"))
    };
    let door = Policies::load(vec![door], options.clone()).await?;
    let policies = Policies::load(vec![rubin.clone()], options.clone()).await?;
    let user = User { name: "ada".into(), ..User::default() };
    let context = FormContext { user: user.clone(), server: String::new() };
    let spawn = AuthorizeRequest {
        action: Action::Spawn,
        user,
        server: String::new(),
        options: Options::new(),
        subject: Subject::default(),
    };

    let reference = measured!("reference: deny-group authorize", 500, door.authorize(&spawn));
    let menu = measured!("rubin's menu of 2,000 tags", 100, policies.image_menu(&context));
    let wanted = measured!("rubin's images to pull of 2,000 tags", 100, policies.prepull());
    let menu_of_policy = policies.image_menu(&context).await?.map(|answer| answer.value).unwrap_or_default();
    let fields = measure("fields of a form with that menu", 100, || {
        image_fields(&offer(&menu_of_policy, registries, &NodeImages::default()))
    });
    ratio("menu", menu, reference);
    ratio("images to pull", wanted, reference);
    ratio("fields", fields, reference);

    for memory_mib in 1.. {
        let mut small = rubin.clone();
        small.limits.memory_bytes = memory_mib << 20;
        let Ok(policies) = Policies::load(vec![small], options.clone()).await else { continue };
        if policies.image_menu(&context).await.is_ok() {
            say(&format!("the menu needs {memory_mib} MiB of a policy's memory"));
            return Ok(());
        }
    }
    Ok(())
}

fn measure<T>(what: &str, times: usize, mut work: impl FnMut() -> T) -> Duration {
    let mut taken = Vec::with_capacity(times);
    for _ in 0..times {
        let start = Instant::now();
        black_box(work());
        taken.push(start.elapsed());
    }
    median(what, taken)
}

macro_rules! measured {
    ($what:literal, $times:literal, $call:expr) => {{
        let mut taken = Vec::with_capacity($times);
        for _ in 0..$times {
            let start = Instant::now();
            black_box($call.await?);
            taken.push(start.elapsed());
        }
        median($what, taken)
    }};
}
use measured;

fn median(what: &str, mut taken: Vec<Duration>) -> Duration {
    taken.sort_unstable();
    let middle = taken[taken.len() / 2];
    say(&format!("{what:40} median {:8.3} ms", middle.as_secs_f64() * 1e3));
    middle
}

fn ratio(what: &str, took: Duration, reference: Duration) {
    say(&format!("{what}: {:.1} times the reference", took.as_secs_f64() / reference.as_secs_f64()));
}

#[expect(clippy::print_stdout, reason = "a benchmark talks to its reader")]
fn say(line: &str) {
    println!("{line}");
}

//! `wasmspawner policy`

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand, ValueEnum};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use serde_json::{Value, json};
use wasmspawner_core::digest::Digest;
use wasmspawner_core::form::FormContext;
use wasmspawner_core::images::{
    Inventory, LabNode, Needs, NodeImages, NodeRules, PullHistory, Refresh, Repository, RepositoryImages,
    Tag, resolved,
};
use wasmspawner_core::policy::{Group, User};

use super::labs::print_json;
use crate::inventory::LiveInventory;
use crate::wasm::{EngineOptions, Policies, PolicySpec};

const EXAMPLES: &str = "\
Examples:
  wasmspawner images list --json > images.json
  wasmspawner policy run policies/rubin.wasm images --config rubin.yaml --input images.json --user ada

The input has the form of GET /images: {repositories: [{name, images: [{tag, digest, nodes_with}]}], nodes: [{name}]}, where
all but name and tag may be left out.";

/// Tries a policy, without a service and without a cluster.
#[derive(Debug, Args)]
pub(super) struct PolicyArgs {
    #[command(subcommand)]
    command: PolicyCommand,
}

#[derive(Debug, Subcommand)]
enum PolicyCommand {
    /// Call a hook of a policy and print its answer as JSON
    Run(RunArgs),
}

#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
struct RunArgs {
    /// The policy, a WebAssembly component
    policy: PathBuf,
    /// The hook
    hook: RunnableHook,
    /// The policy's configuration, as YAML or JSON [default: {}]
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// What the service knows about images, as YAML or JSON; - for standard input
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// The user who asks
    #[arg(long, value_name = "NAME", default_value = "ada")]
    user: String,
    /// A group of the user; may be repeated
    #[arg(long = "group", value_name = "NAME")]
    groups: Vec<String>,
}

/// The hooks that can be tried.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RunnableHook {
    /// The menu of images, the images that nodes are to have, and those that nodes lack
    Images,
}

/// What the service knows about images, as `GET /images` answers.
#[derive(Debug, Deserialize)]
struct Known {
    repositories: Vec<KnownRepository>,
    #[serde(default)]
    nodes: Vec<KnownNode>,
}

#[derive(Debug, Deserialize)]
struct KnownRepository {
    name: Repository,
    images: Vec<KnownImage>,
}

#[derive(Debug, Deserialize)]
struct KnownImage {
    tag: Tag,
    digest: Option<Digest>,
    #[serde(default)]
    nodes_with: usize,
}

#[derive(Debug, Deserialize)]
struct KnownNode {
    name: String,
    excluded: Option<String>,
}

impl PolicyArgs {
    pub(super) fn run(self, out: &mut impl Write) -> anyhow::Result<()> {
        let PolicyCommand::Run(args) = self.command;
        let RunnableHook::Images = args.hook;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        print_json(out, &runtime.block_on(args.images())?)
    }
}

impl RunArgs {
    /// The answers of the policy to `images`.
    async fn images(&self) -> anyhow::Result<Value> {
        let config = self.config.as_deref().map(read::<Value>).transpose()?.unwrap_or_else(|| json!({}));
        let known: Known = read(&self.input)?;
        let inventory = LiveInventory::of(known.registries(), known.node_images()?);
        let spec = PolicySpec { config, ..PolicySpec::new("policy", &self.policy) };
        let policies =
            Policies::load(vec![spec], EngineOptions { inventory, ..EngineOptions::default() }).await?;
        let groups = self.groups.iter().map(|name| Group { name: name.clone(), gid: None }).collect();
        let user = User { name: self.user.clone(), groups, ..User::default() };
        let context = FormContext { user, server: String::new() };
        let menu = policies.image_menu(&context).await?.map(|answer| answer.value);
        let wanted = policies.prepull().await?;
        let known = policies.inventory();
        let (registries, nodes) = (known.registries(), known.nodes());
        let needs = Needs::of(&wanted, &registries, &nodes, &PullHistory::default(), Timestamp::now());
        Ok(json!({ "menu": menu, "prepull": wanted, "missing": needs.missing }))
    }
}

/// Reads a file of YAML or JSON; `-` is standard input.
fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> anyhow::Result<T> {
    let named = || path.display().to_string();
    let text = if path == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(path)
    };
    let text = text.with_context(|| format!("{} cannot be read", named()))?;
    serde_saphyr::from_str(&text).map_err(|error| anyhow!("{}: {error}", named()))
}

impl Known {
    fn registries(&self) -> Inventory {
        let now = Timestamp::UNIX_EPOCH;
        let images = |repository: &KnownRepository| {
            let tags = repository.images.iter().map(|image| image.tag.clone()).collect();
            let digest = |image: &KnownImage| Some((image.tag.clone(), Refresh::Digest(image.digest?)));
            let digests: BTreeMap<_, _> = repository.images.iter().filter_map(digest).collect();
            resolved(&RepositoryImages::default(), tags, &digests, None, now)
        };
        let repositories = self.repositories.iter();
        repositories.fold(Inventory::default(), |known, repository| {
            known.with(repository.name.clone(), images(repository))
        })
    }

    /// The nodes. The input says only how many nodes have an image, so the first ones of the list do.
    fn node_images(&self) -> anyhow::Result<NodeImages> {
        let mut nodes = NodeImages::default();
        let eligible = self.nodes.iter().filter(|node| node.excluded.is_none());
        for (at, KnownNode { name, .. }) in eligible.enumerate() {
            let present = self.repositories.iter().flat_map(|KnownRepository { name, images }| {
                let present = images.iter().filter(|image| image.nodes_with > at);
                present.map(move |KnownImage { tag, digest, .. }| match digest {
                    Some(digest) => json!({"names": [format!("{name}:{tag}"), format!("{name}@{digest}")]}),
                    None => json!({"names": [format!("{name}:{tag}")]}),
                })
            });
            let images: Vec<Value> = present.collect();
            let node: Node = serde_json::from_value(json!({"status": {"images": images}}))?;
            nodes.insert(name.clone(), LabNode::observed(&node, &NodeRules::default()));
        }
        Ok(nodes)
    }
}

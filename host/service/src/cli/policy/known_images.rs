//! The service's knowledge about images, for a policy that is tried.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use wasmspawner_core::images::{
    Inventory, LabNode, NodeImages, NodeRules, Refresh, Repository, RepositoryImages, Tag, resolved,
};
use wasmspawner_core::values::digest::Digest;

use wasmspawner_registry::inventory::LiveInventory;

/// The service's knowledge about images, in the form of the answer to `GET /images`. When and with what success a registry
/// was asked is known, and not read.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct KnownImages {
    repositories: Vec<KnownRepository>,
    nodes: Vec<KnownNode>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownRepository {
    name: Repository,
    images: Vec<KnownImage>,
    #[serde(default, deserialize_with = "ignored")]
    refreshed_at: (),
    #[serde(default, deserialize_with = "ignored")]
    problem: (),
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownImage {
    tag: Tag,
    digest: Option<Digest>,
    #[serde(default)]
    nodes_with: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
struct KnownNode {
    name: String,
    excluded: Option<String>,
}

fn ignored<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    IgnoredAny::deserialize(deserializer).map(|IgnoredAny| ())
}

impl KnownImages {
    pub(super) fn inventory(&self) -> anyhow::Result<LiveInventory> {
        Ok(LiveInventory::from_parts(self.registries(), self.node_images()?))
    }

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

    /// Returns the nodes with their images. The input contains only the number of nodes that have an image, so the
    /// first nodes of the list have it.
    fn node_images(&self) -> anyhow::Result<NodeImages> {
        let mut nodes = NodeImages::default();
        let eligible = self.nodes.iter().filter(|node| node.excluded.is_none());
        for (at, KnownNode { name, .. }) in eligible.enumerate() {
            let present = self.repositories.iter().flat_map(|KnownRepository { name, images, .. }| {
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

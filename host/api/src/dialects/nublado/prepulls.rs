//! The images that nodes pull in advance, as Nublado's controller reports them.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::images::{
    ImageMenu, ImageReference, Inventory, LabNode, NeededImage, NodeImages, Repository,
};
use wasmspawner_spawner::prepull::PrepullReport;

/// The images that nodes are to have, and those that they have.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PrepullerStatus {
    config: PrepullerOptions,
    images: PrepullerImages,
    nodes: Vec<PrepullerNode>,
}

/// Where the images come from. The number of images of each kind is a matter of the site's policy.
#[derive(Debug, Serialize, ToSchema)]
struct PrepullerOptions {
    /// The first repository of the configuration; absent if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<ImageSource>,
}

/// A repository of images.
#[derive(Debug, Serialize, ToSchema)]
struct ImageSource {
    /// Always `docker`: every registry is asked with the same protocol.
    #[serde(rename = "type")]
    kind: &'static str,
    registry: String,
    repository: String,
}

/// The images that nodes are to have.
#[derive(Debug, Serialize, ToSchema)]
struct PrepullerImages {
    /// Images that all their nodes have.
    prepulled: Vec<NodeImage>,
    /// Images that some of their nodes lack.
    pending: Vec<NodeImage>,
}

/// An image, and the nodes that have it.
#[derive(Debug, Serialize, ToSchema)]
struct NodeImage {
    /// The image with its registry and tag.
    reference: String,
    tag: String,
    /// The text that is shown.
    name: String,
    /// `sha256:...`; null if it is not known.
    digest: Option<String>,
    /// Bytes on a node's disk; null if no node has said it.
    size: Option<u64>,
    nodes: Vec<String>,
    /// The nodes that are to have it, and have not.
    missing: Vec<String>,
}

/// A node.
#[derive(Debug, Serialize, ToSchema)]
struct PrepullerNode {
    name: String,
    /// True if labs are placed there, so that it pulls images.
    eligible: bool,
    /// Why no lab is placed there; null if labs are.
    comment: Option<String>,
    /// The images that it has, of those that nodes are to have.
    cached: Vec<String>,
}

impl PrepullerStatus {
    pub(super) fn new(
        report: &PrepullReport,
        menu: &ImageMenu,
        registries: &Inventory,
        nodes: &NodeImages,
    ) -> Self {
        let images = report.images.iter().map(|needed| node_image(needed, menu, nodes));
        let (prepulled, pending) = images.partition(|image| image.missing.is_empty());
        Self {
            config: PrepullerOptions {
                source: registries.repositories().next().map(|(name, _)| source(name)),
            },
            images: PrepullerImages { prepulled, pending },
            nodes: nodes.nodes().map(|(name, node)| described(name, node, report)).collect(),
        }
    }
}

fn source(name: &Repository) -> ImageSource {
    ImageSource { kind: "docker", registry: name.registry().to_owned(), repository: name.path().to_owned() }
}

fn node_image(needed: &NeededImage, menu: &ImageMenu, nodes: &NodeImages) -> NodeImage {
    let image = &needed.image;
    let is_meant = |node: &LabNode| {
        let has_label = |(key, value): (&String, &String)| node.labels.get(key) == Some(value);
        node.excluded.is_none() && needed.node_selector.iter().all(has_label)
    };
    let meant: Vec<_> = nodes.nodes().filter(|(_, node)| is_meant(node)).collect();
    let names = |have: bool| {
        let some = meant.iter().filter(|(_, node)| node.has(image) == have);
        some.map(|(name, _)| (*name).to_owned()).collect()
    };
    // A node that has just pulled the image counts even if it does not list it.
    let missing = if needed.nodes_with >= needed.nodes { Vec::new() } else { names(false) };
    let without_digest = ImageReference { digest: None, ..image.clone() };
    let is_image = |reference: &str| {
        let reference: Option<ImageReference> = reference.parse().ok();
        reference.is_some_and(|reference| ImageReference { digest: None, ..reference } == without_digest)
    };
    let entry = menu.entries.iter().find(|entry| is_image(&entry.reference));
    NodeImage {
        reference: without_digest.to_string(),
        tag: image.tag().to_owned(),
        name: entry.map_or(image.tag(), |entry| entry.label.as_str()).to_owned(),
        digest: image.digest.map(|digest| digest.to_string()),
        size: image.digest.and_then(|digest| nodes.size(&image.repository, digest)),
        nodes: names(true),
        missing,
    }
}

fn described(name: &str, node: &LabNode, report: &PrepullReport) -> PrepullerNode {
    let cached = report.images.iter().filter(|needed| node.has(&needed.image));
    PrepullerNode {
        name: name.to_owned(),
        eligible: node.excluded.is_none(),
        comment: node.excluded.clone(),
        cached: cached
            .map(|needed| ImageReference { digest: None, ..needed.image.clone() }.to_string())
            .collect(),
    }
}

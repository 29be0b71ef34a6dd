use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::pull::image_to_pull;
use super::{Pull, PullHistory};
use crate::images::{ImageReference, Inventory, LabNode, NodeImages, WantedImage};

/// Which nodes need which images.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The images, in the order in which they are wanted. Each is there once for each set of nodes that need it.
    pub images: Vec<NeededImage>,
    /// What nodes lack, in the order in which it is wanted. A pull is there once.
    pub missing: Vec<Pull>,
}

/// An image that nodes need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededImage {
    /// The image as it was named.
    pub reference: String,
    /// The image that the name means now.
    pub image: ImageReference,
    /// Only nodes with these labels need it.
    pub node_selector: BTreeMap<String, String>,
    /// How many nodes need it: those with the labels on which labs can be placed.
    pub nodes: usize,
    /// How many of these have it. A node that has just pulled it counts even if it does not list it.
    pub nodes_with: usize,
}

impl Needs {
    /// Finds what nodes need. A node on which no lab is placed needs nothing, and an image that is wanted under several
    /// names is pulled once.
    pub fn of(
        wanted: &[WantedImage],
        inventory: &Inventory,
        nodes: &NodeImages,
        history: &PullHistory,
        now: Timestamp,
    ) -> Self {
        let mut needs = Self::default();
        let mut known = BTreeSet::new();
        for WantedImage { reference, node_selector } in wanted {
            let Ok(named) = reference.parse::<ImageReference>() else { continue };
            let image = image_to_pull(named, inventory);
            if !known.insert((image.clone(), node_selector)) {
                continue;
            }
            let (mut needing, mut lacking) = (0, Vec::new());
            for (name, node) in nodes.nodes().filter(|(_, node)| needs_image(node, node_selector)) {
                needing += 1;
                if !node.has(&image) {
                    lacking.push(Pull { node: name.to_owned(), image: image.clone() });
                }
            }
            lacking.retain(|pull| !history.has_pulled(pull, now));
            needs.images.push(NeededImage {
                reference: reference.clone(),
                node_selector: node_selector.clone(),
                nodes: needing,
                nodes_with: needing - lacking.len(),
                image,
            });
            needs.missing.extend(lacking);
        }
        // A node may be selected in two ways.
        let mut once = BTreeSet::new();
        needs.missing.retain(|pull| once.insert(pull.clone()));
        needs
    }

    /// The images that any node needs.
    pub fn images(&self) -> impl Iterator<Item = &ImageReference> {
        self.images.iter().map(|needed| &needed.image)
    }
}

fn needs_image(node: &LabNode, selector: &BTreeMap<String, String>) -> bool {
    node.excluded.is_none() && selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
}

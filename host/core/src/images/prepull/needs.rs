use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::pull::image_to_pull;
use super::{Pull, PullHistory};
use crate::images::{ImageReference, Inventory, LabNode, NodeImages, WantedImage};

/// The images that nodes need.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The images, in the order in which they are wanted. Each occurs once for each set of nodes that need it.
    pub images: Vec<NeededImage>,
    /// The images that nodes lack, in the order in which they are wanted. Each pull occurs once.
    pub missing: Vec<Pull>,
}

/// An image that nodes need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NeededImage {
    /// The image as it was named.
    pub reference: String,
    /// The image to which the name refers now.
    pub image: ImageReference,
    /// The labels of the nodes that need the image.
    pub node_selector: BTreeMap<String, String>,
    /// The number of nodes that need the image: those with the labels on which labs can be placed.
    pub nodes: usize,
    /// The number of these nodes that have the image. A node that has just pulled it counts even if it does not list
    /// it.
    pub nodes_with: usize,
}

impl Needs {
    /// Computes the needs of the nodes. A node on which no lab is placed needs nothing, and an image that is wanted
    /// under several names is pulled once.
    pub fn from_wanted(
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
        // A node may match several selectors.
        let mut once = BTreeSet::new();
        needs.missing.retain(|pull| once.insert(pull.clone()));
        needs
    }

    /// Returns the images that any node needs.
    pub fn images(&self) -> impl Iterator<Item = &ImageReference> {
        self.images.iter().map(|needed| &needed.image)
    }
}

fn needs_image(node: &LabNode, selector: &BTreeMap<String, String>) -> bool {
    node.excluded.is_none() && selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
}

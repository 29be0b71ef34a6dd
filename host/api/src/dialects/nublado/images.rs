//! The images that can be started, as Nublado's controller lists them.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::images::{ImageMenu, ImageReference, Inventory, NodeImages, OfferedImage, offer};

/// The images, and those that have a special meaning.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct SpawnerImages {
    #[serde(skip_serializing_if = "Option::is_none")]
    recommended: Option<SpawnerImage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_weekly: Option<SpawnerImage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_daily: Option<SpawnerImage>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_release: Option<SpawnerImage>,
    /// All images, also those that the form does not show.
    all: Vec<SpawnerImage>,
}

/// An image.
#[derive(Debug, Clone, Serialize, ToSchema)]
struct SpawnerImage {
    /// The image with its registry and tag.
    reference: String,
    tag: String,
    /// The text that is shown.
    name: String,
    /// `sha256:...`; absent if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    digest: Option<String>,
    /// Other tags of the same image.
    aliases: Vec<String>,
    /// True if all nodes for labs have it.
    prepulled: bool,
}

impl SpawnerImages {
    pub(super) fn new(menu: &ImageMenu, registries: &Inventory, nodes: &NodeImages) -> Self {
        let offered = offer(menu, registries, nodes);
        let described = |name: &str| {
            let offered = offered.iter().find(|offered| offered.entry.name == name)?;
            Some(image(offered, registries, nodes))
        };
        let of_class = |class: &str| {
            let class = menu.classes.iter().find(|known| known.name == class)?;
            described(&class.entry)
        };
        let recommended = offered.iter().find(|offered| offered.entry.recommended);
        Self {
            recommended: of_class("recommended")
                .or_else(|| recommended.map(|offered| image(offered, registries, nodes))),
            latest_weekly: of_class("latest-weekly"),
            latest_daily: of_class("latest-daily"),
            latest_release: of_class("latest-release"),
            all: offered.iter().map(|offered| image(offered, registries, nodes)).collect(),
        }
    }
}

fn image(offered: &OfferedImage<'_>, registries: &Inventory, nodes: &NodeImages) -> SpawnerImage {
    let entry = offered.entry;
    let known = offered.image.as_ref();
    SpawnerImage {
        reference: entry.reference.clone(),
        tag: known.map_or(entry.name.as_str(), ImageReference::tag).to_owned(),
        name: entry.label.clone(),
        digest: known.and_then(|image| image.digest).map(|digest| digest.to_string()),
        aliases: known.map(|image| aliases(image, registries)).unwrap_or_default(),
        prepulled: nodes.count() > 0 && offered.nodes_with == nodes.count(),
    }
}

/// Returns the other tags that mean the same image, sorted.
fn aliases(image: &ImageReference, registries: &Inventory) -> Vec<String> {
    let (Some(digest), Some(repository)) = (image.digest, registries.repository(&image.repository)) else {
        return Vec::new();
    };
    let same = repository.tags().iter().filter(|known| known.digest == Some(digest));
    let mut aliases: Vec<String> = same.map(|known| known.tag.to_string()).collect();
    aliases.retain(|tag| tag != image.tag());
    aliases.sort();
    aliases
}

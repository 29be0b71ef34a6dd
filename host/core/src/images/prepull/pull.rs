use serde::Serialize;

use crate::images::{ImageReference, Inventory};

/// One image that one node is to pull.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Pull {
    /// The node's name.
    pub node: String,
    /// The image: its digest if that is known, and else its tag. An image with a digest has no tag here, because two
    /// tags of one digest are one image.
    pub image: ImageReference,
}

/// The image that a name means now, as a `Pull` has it.
pub(super) fn image_to_pull(named: ImageReference, inventory: &Inventory) -> ImageReference {
    let digest = inventory.digest(&named);
    let tag = if digest.is_some() { None } else { named.tag };
    ImageReference { tag, digest, ..named }
}

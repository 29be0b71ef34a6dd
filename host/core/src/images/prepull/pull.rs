use serde::Serialize;

use crate::images::{ImageReference, Inventory};

/// A pull of one image to one node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Pull {
    /// The node's name.
    pub node: String,
    /// The image: by its digest if that is known, otherwise by its tag. An image with a digest has no tag here, because
    /// two tags of one digest are the same image.
    pub image: ImageReference,
}

/// Returns the image to which a name refers now, in the form that a `Pull` has.
pub(super) fn image_to_pull(named: ImageReference, inventory: &Inventory) -> ImageReference {
    let digest = inventory.digest(&named);
    let tag = if digest.is_some() { None } else { named.tag };
    ImageReference { tag, digest, ..named }
}

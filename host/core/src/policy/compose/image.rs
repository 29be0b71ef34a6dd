//! The image of a lab: chosen from the menu or by a policy, or that of the configuration, and pinned to a digest.

use super::merge::Merged;
use super::pin::{Pinned, pin};
use super::{Provenance, Source, SpawnInputs, SpawnRejected};
use crate::config::UnpinnedImages;
use crate::policy::Image;

/// Placeholder in an init container's image for the image of the lab, which is known only after all answers are merged.
pub const IMAGE_OF_LAB: &str = "wasmspawner.io/image-of-the-lab";

impl Merged {
    /// Sets the image of the lab in the init containers that ask for it.
    pub(super) fn use_image_of_lab(&mut self, image: &Image) {
        for init in self.init_containers.iter_mut().filter(|init| init.image == IMAGE_OF_LAB) {
            init.image = image.pinned();
        }
    }
}

pub(super) fn image(
    merged: &Merged,
    inputs: &SpawnInputs<'_>,
    provenance: &mut Provenance,
) -> Result<Image, SpawnRejected> {
    let mut image = match &merged.image {
        Some(image) => image.clone(),
        None => configured(inputs, provenance)?,
    };
    let inventory = &inputs.images.inventory;
    match (pin(&mut image, inventory), inputs.images.unpinned) {
        (Pinned::Already, _) => {}
        (Pinned::ByInventory, _) => provenance.set("image.digest", &Source::Service),
        (Pinned::Unknown(reason), UnpinnedImages::Refuse) => {
            let message = format!("{}: its digest is not known: {reason}", image.reference);
            return Err(SpawnRejected::operator("images.unpinned", message));
        }
        (Pinned::Unknown(reason), UnpinnedImages::Allow) => {
            if inventory.repositories().next().is_some() {
                provenance.notes.push(format!("image: not pinned to a digest: {reason}"));
            }
        }
    }
    Ok(image)
}

/// Returns the configured image, for labs for which no image was chosen.
fn configured(inputs: &SpawnInputs<'_>, provenance: &mut Provenance) -> Result<Image, SpawnRejected> {
    if let Some(reference) = inputs.lab.section.image.clone() {
        provenance.set("image", &Source::Configuration);
        return Ok(Image { reference, ..Image::default() });
    }
    let unread = inputs.images.inventory.repositories().find_map(|(name, images)| {
        let problem = images.problem.as_ref()?;
        Some(format!("; the images of {name} cannot be read: {}", problem.message))
    });
    let message = format!(
        "no policy chooses an image for this lab, and the configuration has none to fall back on{}",
        unread.unwrap_or_default()
    );
    Err(SpawnRejected::operator("lab.image", message))
}

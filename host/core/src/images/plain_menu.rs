use super::{ImageMenu, Inventory, MenuEntry, Place};

/// The menu of a site without a policy for it: all images of all repositories, newest first.
pub fn plain_menu(inventory: &Inventory) -> ImageMenu {
    let several = inventory.repositories().nth(1).is_some();
    let mut entries = Vec::new();
    for (repository, images) in inventory.repositories() {
        let title = repository.path().rsplit('/').next().unwrap_or_default();
        entries.extend(images.tags().iter().map(|known| MenuEntry {
            // The name of an image says where it is from if there are several places.
            name: if several { format!("{repository}:{}", known.tag) } else { known.tag.to_string() },
            reference: format!("{repository}:{}", known.tag),
            digest: None,
            label: format!("{title} {}", known.tag),
            description: None,
            group: several.then(|| repository.to_string()),
            recommended: false,
            place: Place::Automatic,
        }));
    }
    ImageMenu { entries, classes: Vec::new() }
}

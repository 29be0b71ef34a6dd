use super::{ImageMenu, ImageReference, Inventory, MenuEntry, Place, Repository};

/// Returns the menu of a site without a policy for it: all images of these repositories, newest first. The image
/// `default`, which labs without a choice get, is recommended if it is among them.
pub fn plain_menu<'a>(
    inventory: &Inventory,
    repositories: impl IntoIterator<Item = &'a Repository>,
    default: Option<&ImageReference>,
) -> ImageMenu {
    let repositories: Vec<&Repository> = repositories.into_iter().collect();
    let several = repositories.len() > 1;
    let mut entries = Vec::new();
    for repository in repositories {
        let title = repository.path().rsplit('/').next().unwrap_or_default();
        let tags = inventory.repository(repository).map(super::RepositoryImages::tags).unwrap_or_default();
        entries.extend(tags.iter().map(|known| MenuEntry {
            // The name of an image includes the repository if there are several.
            name: if several { format!("{repository}:{}", known.tag) } else { known.tag.to_string() },
            reference: format!("{repository}:{}", known.tag),
            digest: None,
            label: format!("{title} {}", known.tag),
            description: several.then(|| repository.to_string()),
            group: None,
            recommended: default.is_some_and(|default| {
                default.repository == *repository && default.tag() == known.tag.as_str()
            }),
            place: Place::Automatic,
        }));
    }
    ImageMenu { entries, classes: Vec::new() }
}

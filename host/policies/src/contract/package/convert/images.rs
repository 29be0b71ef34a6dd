use wasmspawner_core::images::{
    ImageClass, ImageMenu, ImageReference, KnownTag, MenuEntry, NodeImages, Place, Repository, WantedImage,
};
use wasmspawner_core::policy::form::FormContext;

use super::super::bindings::hooks::images as wit;
use super::super::bindings::host;
use super::user::user;

pub(in super::super) fn image_menu_request(context: &FormContext) -> wit::Request {
    wit::Request { user: user(&context.user), server: context.server.clone() }
}

pub(in super::super) fn image_menu(menu: wit::ImageMenu) -> ImageMenu {
    let class = |class: wit::Class| ImageClass { name: class.name, entry: class.entry };
    ImageMenu {
        entries: menu.entries.into_iter().map(entry).collect(),
        classes: menu.classes.into_iter().map(class).collect(),
    }
}

fn entry(entry: wit::Entry) -> MenuEntry {
    MenuEntry {
        name: entry.name,
        reference: entry.reference,
        digest: entry.digest,
        label: entry.label,
        description: entry.description,
        group: entry.group,
        recommended: entry.recommended,
        place: match entry.place {
            wit::Place::Automatic => Place::Automatic,
            wit::Place::First => Place::First,
            wit::Place::Rest => Place::Rest,
            wit::Place::Hidden(reason) => Place::Hidden(reason),
        },
    }
}

pub(in super::super) fn wanted_images(wanted: Vec<wit::WantedImage>) -> Vec<WantedImage> {
    let image = |image: wit::WantedImage| WantedImage {
        reference: image.reference,
        node_selector: image.node_selector.into_iter().map(|pair| (pair.name, pair.value)).collect(),
    };
    wanted.into_iter().map(image).collect()
}

/// Converts a tag to the form for policies, with the number of nodes that have its image.
pub(in super::super) fn known_image(
    repository: &Repository,
    known: &KnownTag,
    nodes: &NodeImages,
) -> host::KnownImage {
    let image =
        ImageReference { repository: repository.clone(), tag: Some(known.tag.clone()), digest: known.digest };
    host::KnownImage {
        tag: known.tag.to_string(),
        digest: known.digest.map(|digest| digest.to_string()),
        size_bytes: known.digest.and_then(|digest| nodes.size(repository, digest)),
        nodes_with: u32::try_from(nodes.with(&image)).unwrap_or(u32::MAX),
    }
}

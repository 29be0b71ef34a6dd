use super::{ImageMenu, ImageReference, Inventory, MenuEntry, NodeImages, Place};

/// Largest number of images that are all shown at once if it is unknown which nodes have them.
const FEW: usize = 6;

/// An entry of a menu, with the data that the service has about its image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OfferedImage<'a> {
    /// The entry.
    pub entry: &'a MenuEntry,
    /// The place of the entry in the form; never [`Place::Automatic`].
    pub place: Place,
    /// True for the image of users who choose none.
    pub is_default: bool,
    /// The image, with its digest if it is known.
    pub image: Option<ImageReference>,
    /// The number of nodes that have the image, among those on which labs can be placed.
    pub nodes_with: usize,
}

/// Returns the entries of a menu in display order: the recommended ones before the others.
pub fn offer<'a>(menu: &'a ImageMenu, inventory: &Inventory, nodes: &NodeImages) -> Vec<OfferedImage<'a>> {
    let default = menu.default_entry().map(|entry| entry.name.as_str());
    let few = menu.entries.iter().filter(|entry| !entry.is_hidden()).count() <= FEW;
    let offered = |entry: &'a MenuEntry| {
        let image = entry.reference_in(inventory);
        let nodes_with = image.as_ref().map_or(0, |image| nodes.with(image));
        let everywhere = if nodes.count() == 0 { few } else { nodes_with == nodes.count() };
        let is_default = default == Some(entry.name.as_str());
        let place = match &entry.place {
            Place::Automatic if entry.recommended || is_default || everywhere => Place::First,
            Place::Automatic => Place::Rest,
            place => place.clone(),
        };
        OfferedImage { entry, place, is_default, image, nodes_with }
    };
    let mut offer: Vec<_> = menu.entries.iter().map(offered).collect();
    offer.sort_by_key(|offered| !offered.entry.recommended);
    offer
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;

    use super::*;
    use crate::images::{LabNode, NodeRules};

    const MENU: &str = "
entries:
  - {name: a, reference: 'lab:a', label: A}
  - {name: b, reference: 'lab:b', label: B}
  - {name: c, reference: 'lab:c', label: C, recommended: true}
  - {name: d, reference: 'lab:d', label: D, place: rest}
  - {name: e, reference: 'lab:e', label: E, place: {hidden: too old}}
  - {name: f, reference: 'lab:f', label: F, place: first}";

    fn nodes(images: &[&[&str]]) -> NodeImages {
        let mut nodes = NodeImages::default();
        for (at, tags) in images.iter().enumerate() {
            let names: Vec<_> = tags.iter().map(|tag| format!("docker.io/library/lab:{tag}")).collect();
            let node: Node =
                serde_json::from_value(serde_json::json!({"status": {"images": [{"names": names}]}}))
                    .unwrap();
            nodes.insert(format!("node-{at}"), LabNode::observed(&node, &NodeRules::default()));
        }
        nodes
    }

    fn shown(menu: &ImageMenu, nodes: &NodeImages) -> (String, String) {
        let offer = offer(menu, &Inventory::default(), nodes);
        let at = |place: Place| {
            let there = offer.iter().filter(|offered| offered.place == place);
            there.map(|offered| offered.entry.name.as_str()).collect()
        };
        (at(Place::First), at(Place::Rest))
    }

    #[test]
    fn recommended_and_warm_images_are_shown_first() {
        let menu: ImageMenu = serde_saphyr::from_str(MENU).unwrap();
        let both = |first: &str, rest: &str| (first.to_owned(), rest.to_owned());
        assert_eq!(shown(&menu, &nodes(&[&["a", "b", "d", "e"], &["b", "d", "e"]])), both("cbf", "ad"));
        assert_eq!(shown(&menu, &nodes(&[&[]])), both("cf", "abd"));
        assert_eq!(shown(&menu, &NodeImages::default()), both("cabf", "d"), "nobody knows, and they are few");
        let offer = offer(&menu, &Inventory::default(), &nodes(&[&["a"], &[]]));
        assert_eq!((offer[0].entry.name.as_str(), offer[0].is_default), ("c", true));
        assert_eq!(offer[1].nodes_with, 1);
    }
}

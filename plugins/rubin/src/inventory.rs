//! The images of the site's repository: their order, and the tags that are other names of the same image.

use std::collections::BTreeMap;

use wasmspawner_sdk::host::KnownImage;

use crate::tag::Tag;

/// A tag of the repository with its image.
#[derive(Clone, Debug)]
pub(crate) struct Image {
    pub(crate) tag: Tag,
    pub(crate) digest: Option<String>,
    /// The tag that explains this one, if this one is an alias.
    pub(crate) target: Option<String>,
}

/// All images of the repository, in the order of the menu.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    images: Vec<Image>,
}

impl Inventory {
    /// Reads the tags. A tag that says nothing itself becomes an alias of a tag with the same digest that does.
    pub(crate) fn new(known: Vec<KnownImage>, is_alias: impl Fn(&Tag) -> bool) -> Self {
        let image = |known: KnownImage| {
            let tag = Tag::parse(&known.tag);
            let tag = if is_alias(&tag) { Tag::alias(&known.tag) } else { tag };
            Image { tag, digest: known.digest, target: None }
        };
        let mut images: Vec<_> = known.into_iter().map(image).collect();
        let targets = targets(&images);
        for image in images.iter_mut().filter(|image| image.tag.may_be_alias()) {
            if let Some(target) = image.digest.as_ref().and_then(|digest| targets.get(digest)) {
                image.tag.become_alias_of(target);
                image.target = Some(target.as_str().to_owned());
            }
        }
        images.sort_by(|left, right| left.tag.newest_first(&right.tag));
        Self { images }
    }

    /// All images, in the order of the menu.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Image> {
        self.images.iter()
    }

    /// The image with this tag.
    pub(crate) fn tagged(&self, tag: &str) -> Option<&Image> {
        self.iter().find(|image| image.tag.as_str() == tag)
    }
}

/// The tag that explains the aliases of each digest: the first in the order of the menu, with preference for a tag for
/// all architectures.
fn targets(images: &[Image]) -> BTreeMap<String, Tag> {
    let mut targets: BTreeMap<String, Tag> = BTreeMap::new();
    for Image { tag, digest, .. } in images.iter().filter(|image| !image.tag.may_be_alias()) {
        let Some(digest) = digest else { continue };
        let is_better = |other: &Tag| {
            let for_one = |tag: &Tag| tag.architecture.is_some();
            for_one(tag).cmp(&for_one(other)).then_with(|| tag.newest_first(other)).is_lt()
        };
        if targets.get(digest).is_none_or(is_better) {
            targets.insert(digest.clone(), tag.clone());
        }
    }
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inventory(tags: &[(&str, &str)]) -> Inventory {
        let known = tags.iter().map(|(tag, digest)| KnownImage {
            tag: (*tag).to_owned(),
            digest: (!digest.is_empty()).then(|| (*digest).to_owned()),
            size_bytes: None,
            nodes_with: 0,
        });
        Inventory::new(known.collect(), |tag| tag.as_str() == "recommended")
    }

    fn names(inventory: &Inventory) -> Vec<&str> {
        inventory.iter().map(|image| image.tag.name.as_str()).collect()
    }

    #[test]
    fn an_unknown_tag_with_the_digest_of_a_known_one_is_an_alias() {
        let all =
            inventory(&[("w_2025_07", "a"), ("stable", "a"), ("other", "b"), ("another", "b"), ("lost", "")]);
        assert_eq!(names(&all), ["Stable (Weekly 2025_07)", "Weekly 2025_07", "other", "lost", "another"]);
        assert_eq!(all.tagged("stable").unwrap().target.as_deref(), Some("w_2025_07"));
    }

    #[test]
    fn a_configured_alias_needs_no_digest() {
        assert_eq!(names(&inventory(&[("recommended", "")])), ["Recommended"]);
    }

    #[test]
    fn the_best_of_several_tags_explains_an_alias() {
        let tags = [("recommended", "a"), ("w_2025_07", "a"), ("r29_0_0-arm64", "a"), ("r29_0_0", "a")];
        assert_eq!(names(&inventory(&tags))[0], "Recommended (Release r29.0.0)");
    }
}

use std::collections::BTreeSet;

use wasmspawner_sdk::Section;
use wasmspawner_sdk::host::KnownImage;

use super::source;
use crate::inventory::{Image, Inventory};
use crate::owned;
use crate::tag::{Kind, Tag};

/// Keys of Nublado that the service itself decides about.
const OWNED: [(&str, &str); 3] = [
    ("prepullTimeout", "the service pulls images; set `images.prepull.time_limit` in its configuration"),
    ("refreshInterval", "the service reads the registry; set `images.refresh_every` in its configuration"),
    ("dockerCredentialsPath", owned::REGISTRY_LOGINS),
];

/// The images of a repository that the site offers, and those that all nodes pull (`images` of the configuration).
#[derive(Default)]
pub(crate) struct Offer {
    /// Registry and name, without a tag.
    pub(crate) repository: String,
    recommended: String,
    releases: usize,
    weeklies: usize,
    dailies: usize,
    /// The cycle of offered images. Images of other cycles cannot talk to the telescope's software.
    pub(crate) cycle: Option<u64>,
    pinned: Vec<String>,
    aliases: Vec<String>,
}

impl Offer {
    pub(crate) fn read(images: &mut Section<'_>) -> Self {
        owned::ignore(images, &OWNED);
        if !images.has("source") {
            images.problem("source", "is missing");
        }
        Self {
            repository: images.section("source", source::repository).unwrap_or_default(),
            recommended: images.optional("recommendedTag").unwrap_or_else(|| "recommended".into()),
            releases: images.optional("numReleases").unwrap_or(1),
            weeklies: images.optional("numWeeklies").unwrap_or(2),
            dailies: images.optional("numDailies").unwrap_or(3),
            cycle: images.optional("cycle"),
            pinned: images.or_default("pin"),
            aliases: images.or_default("aliasTags"),
        }
    }

    /// The reference of the image with this tag.
    pub(crate) fn reference(&self, tag: &str) -> String {
        format!("{}:{tag}", self.repository)
    }

    /// The images of the repository. The recommended tag is an alias unless it has the form of another type.
    pub(crate) fn inventory(&self, known: Vec<KnownImage>) -> Inventory {
        let listed = |tag: &Tag| self.aliases.iter().any(|alias| alias == tag.as_str());
        let recommended = |tag: &Tag| self.is_recommended(tag) && tag.kind == Kind::Unknown;
        Inventory::new(known, |tag| listed(tag) || recommended(tag))
    }

    pub(crate) fn is_recommended(&self, tag: &Tag) -> bool {
        tag.as_str() == self.recommended
    }

    pub(crate) fn is_pinned(&self, tag: &Tag) -> bool {
        self.pinned.iter().any(|pinned| pinned == tag.as_str())
    }

    /// Returns true if the cycle of the image permits offering it. A resolved alias has the cycle of its target. If the
    /// target has no cycle, the alias's own one counts.
    pub(crate) fn has_cycle(&self, tag: &Tag) -> bool {
        let Some(wanted) = self.cycle else { return true };
        let own = || if tag.kind == Kind::Alias { Tag::alias(tag.as_str()).cycle } else { None };
        tag.cycle.or_else(own) == Some(wanted)
    }

    /// The images that are wanted on all nodes, the most important first: the recommended one, the newest of each type,
    /// and pinned ones. The recommended one may be of any cycle. An image with several tags is listed for each of them.
    pub(crate) fn wanted<'a>(&self, inventory: &'a Inventory) -> Vec<&'a Image> {
        let recommended = inventory.tagged(&self.recommended);
        let newest =
            [(Kind::Release, self.releases), (Kind::Weekly, self.weeklies), (Kind::Daily, self.dailies)]
                .into_iter()
                .flat_map(|(kind, number)| self.newest(inventory, kind).take(number));
        let pinned = self.pinned.iter().filter_map(|tag| inventory.tagged(tag));
        let mut listed = BTreeSet::new();
        recommended
            .into_iter()
            .chain(newest)
            .chain(pinned.filter(|image| self.has_cycle(&image.tag)))
            .filter(|image| listed.insert(image.tag.as_str()))
            .collect()
    }

    /// The images of a type, newest first, without those of another cycle and those for only one architecture.
    pub(crate) fn newest<'a>(&self, inventory: &'a Inventory, kind: Kind) -> impl Iterator<Item = &'a Image> {
        let offered = move |tag: &Tag| tag.kind == kind && tag.architecture.is_none() && self.has_cycle(tag);
        inventory.iter().filter(move |image| offered(&image.tag))
    }

    /// The wanted images, each digest once.
    pub(crate) fn prepulled<'a>(&self, inventory: &'a Inventory) -> Vec<&'a Image> {
        let mut digests = BTreeSet::new();
        let mut wanted = self.wanted(inventory);
        wanted.retain(|image| image.digest.as_ref().is_none_or(|digest| digests.insert(digest)));
        wanted
    }
}

use std::collections::BTreeSet;

use wasmspawner_sdk::images::{Class, Entry, ImageMenu, Place, WantedImage};
use wasmspawner_sdk::{Error, Pair, User, hooks, host};

use super::Offer;
use super::dropdown::{Check, Dropdown};
use crate::RubinPolicy;
use crate::inventory::{Image, Inventory};
use crate::tag::Kind;

impl hooks::Images for RubinPolicy {
    fn menu(&self, _: &User, _: &str) -> Result<Option<ImageMenu>, Error> {
        let inventory = self.offer.inventory(host::images(&self.offer.repository));
        Ok(Some(menu(&self.offer, &self.dropdown, &inventory, host::now_millis())))
    }

    fn prepull(&self) -> Result<Vec<WantedImage>, Error> {
        let inventory = self.offer.inventory(host::images(&self.offer.repository));
        let node_selector: Vec<Pair> = self.lab.placement.node_selector.clone();
        let wanted = |image: &Image| WantedImage {
            reference: self.offer.reference(image.tag.as_str()),
            node_selector: node_selector.clone(),
        };
        Ok(self.offer.prepulled(&inventory).into_iter().map(wanted).collect())
    }
}

/// Returns the menu: the recommended image, those that are pulled in advance, the rest by type, and hidden ones.
pub(crate) fn menu(offer: &Offer, dropdown: &Dropdown, inventory: &Inventory, now_millis: u64) -> ImageMenu {
    let mut places = Places::new(offer, dropdown, inventory, now_millis);
    let entry = |image: &Image| {
        let place = places.of(image);
        let in_group = matches!(place, Place::Automatic | Place::Rest);
        Entry {
            recommended: offer.is_recommended(&image.tag),
            group: in_group.then(|| image.tag.kind.title().into()),
            place,
            // The service pins the digest.
            ..Entry::new(image.tag.as_str(), offer.reference(image.tag.as_str()), &image.tag.name)
        }
    };
    let mut entries: Vec<Entry> = inventory.iter().map(entry).collect();
    entries.sort_by_key(|entry| match entry.place {
        Place::First => 0,
        Place::Automatic => 1,
        Place::Rest => 2,
        Place::Hidden(_) => 3,
    });
    ImageMenu { classes: classes(offer, inventory, &entries), entries }
}

/// Decides the place of an image in the menu. Images must be passed in the order of the menu.
struct Places<'a> {
    offer: &'a Offer,
    wanted: BTreeSet<&'a str>,
    /// Tags of wanted images that another wanted image is an alias of.
    aliased_among_wanted: BTreeSet<&'a str>,
    aliased: BTreeSet<&'a str>,
    dropdown: Check<'a>,
}

impl<'a> Places<'a> {
    fn new(offer: &'a Offer, dropdown: &'a Dropdown, inventory: &'a Inventory, now_millis: u64) -> Self {
        let wanted = offer.wanted(inventory);
        Self {
            offer,
            wanted: wanted.iter().map(|image| image.tag.as_str()).collect(),
            aliased_among_wanted: targets(wanted.into_iter()),
            aliased: targets(inventory.iter().filter(|image| offer.has_cycle(&image.tag))),
            dropdown: dropdown.at(now_millis),
        }
    }

    fn of(&mut self, image: &Image) -> Place {
        let tag = &image.tag;
        if self.offer.is_recommended(tag) {
            return Place::First;
        }
        if let Some(reason) = not_offered(self.offer, image) {
            return Place::Hidden(reason);
        }
        // An image that is shown elsewhere still counts as one of the list.
        let filtered = self.dropdown.refuses(tag);
        let is_wanted = self.wanted.contains(tag.as_str());
        let aliased = if is_wanted { &self.aliased_among_wanted } else { &self.aliased };
        if aliased.contains(tag.as_str()) {
            return Place::Hidden("It is listed by another name.".into());
        }
        match filtered {
            // The service moves it to the first entries when all nodes have it.
            _ if is_wanted => Place::Automatic,
            Some(reason) => Place::Hidden(reason),
            None => Place::Rest,
        }
    }
}

/// The tags that aliases among these images stand for.
fn targets<'a>(images: impl Iterator<Item = &'a Image>) -> BTreeSet<&'a str> {
    images.filter_map(|image| image.target.as_deref()).collect()
}

/// The reason why an image is in no menu of this site. Pinned images are in the menu, whatever their architecture.
fn not_offered(offer: &Offer, image: &Image) -> Option<String> {
    let tag = &image.tag;
    if let Some(architecture) = tag.architecture.as_ref().filter(|_| !offer.is_pinned(tag)) {
        return Some(format!("It is only for the architecture {architecture}."));
    }
    let wanted = offer.cycle.filter(|_| !offer.has_cycle(tag))?;
    Some(match tag.cycle {
        Some(cycle) => format!("It is of SAL cycle {cycle}; this site needs cycle {wanted}."),
        None => format!("It is of no SAL cycle; this site needs cycle {wanted}."),
    })
}

/// The names by which programs request an image. An entry whose tag is such a name needs no other.
fn classes(offer: &Offer, inventory: &Inventory, entries: &[Entry]) -> Vec<Class> {
    let newest = |kind| offer.newest(inventory, kind).next().map(|image| image.tag.as_str());
    let recommended = inventory.iter().find(|image| offer.is_recommended(&image.tag));
    [
        ("recommended", recommended.map(|image| image.tag.as_str())),
        ("latest-release", newest(Kind::Release)),
        ("latest-weekly", newest(Kind::Weekly)),
        ("latest-daily", newest(Kind::Daily)),
    ]
    .into_iter()
    .filter(|(name, _)| entries.iter().all(|entry| entry.name != *name))
    .filter_map(|(name, entry)| Some(Class { name: name.into(), entry: entry?.into() }))
    .collect()
}

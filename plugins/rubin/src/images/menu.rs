use std::collections::BTreeSet;

use wasmspawner_sdk::images::{Class, Entry, ImageMenu, Place, WantedImage};
use wasmspawner_sdk::{Error, Pair, User, hooks, host};

use super::{Dropdown, Offer};
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

/// The menu: the recommended image, those that are pulled in advance, the rest by type, and hidden ones.
pub(crate) fn menu(offer: &Offer, dropdown: &Dropdown, inventory: &Inventory, now_millis: u64) -> ImageMenu {
    let wanted = offer.wanted(inventory);
    let wanted_tags: BTreeSet<_> = wanted.iter().map(|image| image.tag.as_str()).collect();
    let hidden_among_wanted = targets(wanted.iter().copied());
    let hidden_among_all = targets(inventory.iter().filter(|image| offer.has_cycle(&image.tag)));
    let mut listed = dropdown.at(now_millis);

    let (mut recommended, mut first, mut rest, mut hidden) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for image in inventory.iter() {
        let tag = &image.tag;
        let mut entry = entry(offer, image);
        if offer.is_recommended(tag) {
            entry.recommended = true;
            entry.place = Place::First;
            recommended.push(entry);
            continue;
        }
        let is_wanted = wanted_tags.contains(tag.as_str());
        let targets = if is_wanted { &hidden_among_wanted } else { &hidden_among_all };
        let not_offered = not_offered(offer, image);
        // An image that an alias stands for counts as listed.
        let filtered = if not_offered.is_none() { listed.refuses(tag) } else { None };
        let aliased = || targets.contains(tag.as_str()).then(|| "It is listed by another name.".to_owned());
        match not_offered.or_else(aliased).or_else(|| filtered.filter(|_| !is_wanted)) {
            Some(reason) => {
                entry.place = Place::Hidden(reason);
                hidden.push(entry);
            }
            None if is_wanted => first.push(entry),
            None => {
                entry.place = Place::Rest;
                rest.push(entry);
            }
        }
    }
    let entries: Vec<Entry> = recommended.into_iter().chain(first).chain(rest).chain(hidden).collect();
    ImageMenu { classes: classes(offer, inventory, &entries), entries }
}

/// The tags that aliases among these images stand for.
fn targets<'a>(images: impl Iterator<Item = &'a Image>) -> BTreeSet<&'a str> {
    images.filter_map(|image| image.target.as_deref()).collect()
}

/// The entry of a wanted image: it is among the first once all nodes have it.
fn entry(offer: &Offer, image: &Image) -> Entry {
    let tag = &image.tag;
    Entry {
        digest: image.digest.clone(),
        group: Some(tag.kind.title().into()),
        ..Entry::new(tag.as_str(), offer.reference(tag.as_str()), &tag.name)
    }
}

/// The reason why an image is in no menu of this site. Pinned images are, whatever their architecture.
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

/// The names by which programs ask for an image. An entry whose tag is such a name needs no other.
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

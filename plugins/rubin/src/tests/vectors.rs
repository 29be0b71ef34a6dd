//! The tags, orders and collections with the answers of Nublado 15.1.
//!
//! There is one deliberate difference: Nublado compares `rc10` and `rc2` as texts. Here the number counts, and `rc10`
//! is the newer one ([`with_newer_rc10`]).

use serde_json::{Value, json};
use wasmspawner_sdk::config;
use wasmspawner_sdk::host::KnownImage;
use wasmspawner_sdk::images::Place;

use crate::images::{Dropdown, Offer, menu};
use crate::inventory::{Image, Inventory};
use crate::tag::Tag;

fn vectors() -> Value {
    serde_json::from_str(include_str!("../vectors/nublado-15.1-tags.json")).unwrap()
}

fn texts(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|text| text.as_str().unwrap()).collect()
}

/// Exchanges two candidates in the expected order, because Nublado takes the older one for the newer one.
fn with_newer_rc10(mut tags: Vec<&str>) -> Vec<&str> {
    let at = |tag: &str| tags.iter().position(|other| *other == tag).unwrap();
    let (second, tenth) = (at("r23_0_0_rc2"), at("r23_0_0_rc10"));
    assert_eq!(second + 1, tenth, "the vectors have Nublado's order");
    tags.swap(second, tenth);
    tags
}

fn known(tags: &[&str], digest: impl Fn(&str) -> Option<String>) -> Vec<KnownImage> {
    let image = |tag: &&str| KnownImage {
        tag: (*tag).to_owned(),
        digest: digest(tag),
        size_bytes: None,
        nodes_with: 0,
    };
    tags.iter().map(image).collect()
}

fn inventory(tags: &[&str], aliases: &[&str], digest: impl Fn(&str) -> Option<String>) -> Inventory {
    Inventory::new(known(tags, digest), |tag| aliases.contains(&tag.as_str()))
}

fn tags<'a>(images: impl IntoIterator<Item = &'a Image>) -> Vec<&'a str> {
    images.into_iter().map(|image| image.tag.as_str()).collect()
}

#[test]
fn all_tags_are_read_as_nublado_reads_them() {
    let vectors = vectors();
    let all = vectors["tags"].as_array().unwrap();
    assert_eq!(all.len(), 81);
    for vector in all {
        let expected = &vector["expect"];
        let text = expected["tag"].as_str().unwrap();
        let tag = if vector["alias"] == true { Tag::alias(text) } else { Tag::parse(text) };
        let (base, cycle_build, extra) = tag.parts();
        let found = serde_json::json!({
            "tag": tag.as_str(),
            "image_type": tag.kind.as_str(),
            "display_name": tag.name,
            "version": tag.version.map(|version| version.to_string()),
            "semantic": tag.has_release_version(),
            "base": base,
            "cycle": tag.cycle,
            "cycle_build": cycle_build,
            "build": tag.rsp_build,
            "architecture": tag.architecture,
            "extra": extra,
            "date": expected["date"],
        });
        assert_eq!(found, *expected, "{text}");
        let date = expected["date"].as_str().map(|date| crate::date::Date::parse(date).unwrap());
        assert_eq!(tag.date, date, "{text}");
    }
}

#[test]
fn the_menu_has_nublados_order() {
    let vectors = vectors();
    let order = &vectors["order"];
    let all = inventory(&texts(&order["input"]), &texts(&order["aliases"]), |_| None);
    assert_eq!(tags(all.iter()), with_newer_rc10(texts(&order["menu_order_with_architectures"])));
    let of_all = all.iter().filter(|image| image.tag.architecture.is_none());
    assert_eq!(tags(of_all), with_newer_rc10(texts(&order["menu_order"])));
}

#[test]
fn a_collection_resolves_aliases_as_nublado_does() {
    let vectors = vectors();
    let collection = &vectors["collections"][0];
    // The registry's order decides between equal tags. JSON objects have no order, so that of the other vectors is
    // used.
    let registry = texts(&vectors["order"]["input"]);
    let digests = collection["tags"].as_object().unwrap();
    assert_eq!(registry.len(), digests.len());
    let digest = |tag: &str| Some(digests[tag].as_str().unwrap().to_owned());
    let all = inventory(&registry, &texts(&collection["aliases"]), digest);

    let expected = collection["all"].as_array().unwrap();
    let order = expected.iter().map(|image| image["tag"].as_str().unwrap()).collect();
    assert_eq!(tags(all.iter()), with_newer_rc10(order));
    for image in expected {
        let text = image["tag"].as_str().unwrap();
        let found = all.tagged(text).unwrap();
        assert_eq!(found.tag.kind.as_str(), image["type"], "{text}");
        assert_eq!(found.tag.name, image["name"], "{text}");
        assert_eq!(found.target.as_deref(), image["alias_target"].as_str(), "{text}");
        let aliases = all.iter().filter(|other| other.target.as_deref() == Some(text));
        assert_eq!(tags(aliases), texts(&image["aliases"]), "{text}");
    }
}

/// The site's offer with these settings, which do not include the source.
fn offer(images: &Value) -> Offer {
    let mut images = images.clone();
    images["source"] = json!({"type": "docker", "repository": "lsstsqre/sciplat-lab"});
    config::check(&images.to_string(), Offer::read).unwrap().0
}

#[test]
fn the_menu_hides_what_nublado_hides() {
    let vectors = vectors();
    let collection = &vectors["collections"][0];
    let known = known(&texts(&vectors["order"]["input"]), |tag| {
        Some(collection["tags"][tag].as_str().unwrap().to_owned())
    });
    let images = json!({
        "recommendedTag": collection["recommended"], "aliasTags": collection["aliases"],
        "numReleases": 0, "numWeeklies": 0, "numDailies": 0
    });
    let offer = offer(&images);
    let menu = menu(&offer, &Dropdown::default(), &offer.inventory(known), 0);
    let shown = menu.entries.iter().filter(|entry| !matches!(entry.place, Place::Hidden(_)));
    let shown: Vec<_> = shown.map(|entry| entry.name.as_str()).collect();
    assert_eq!(shown, with_newer_rc10(texts(&collection["menu_hiding_aliased"])));
}

#[test]
fn the_images_of_a_cycle_are_those_of_nublado() {
    let vectors = vectors();
    let offer = offer(&json!({"cycle": 20}));
    let all = offer.inventory(known(&texts(&vectors["order"]["input"]), |_| None));
    let of_cycle = all.iter().filter(|image| offer.has_cycle(&image.tag) && image.tag.architecture.is_none());
    assert_eq!(tags(of_cycle), texts(&vectors["order"]["cycle_20"]));
}

#[test]
fn the_newest_images_are_wanted_as_in_nublado() {
    let vectors = vectors();
    let offer =
        offer(&json!({"numReleases": 1, "numWeeklies": 2, "numDailies": 3, "recommendedTag": "none"}));
    let all = offer.inventory(known(&texts(&vectors["order"]["input"]), |_| None));
    let mut wanted = tags(offer.prepulled(&all));
    wanted.sort_unstable();
    assert_eq!(wanted, texts(&vectors["order"]["prepull_1_release_2_weeklies_3_dailies"]));
}

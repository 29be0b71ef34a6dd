//! The hook `images`: the menu, and the images that are pulled in advance.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};
use wasmspawner_sdk::images::{Entry, ImageMenu, Place};
use wasmspawner_sdk::testing::KnownImages;

use super::{ada, example, site};

const REPOSITORY: &str = "docker.io/lsstsqre/sciplat-lab";

/// The tags of a repository, in the order of a registry, with their digests.
const TAGS: [(&str, &str); 14] = [
    ("recommended", "sha256:w07"),
    ("latest_weekly", "sha256:w08"),
    ("r29_0_0", "sha256:r29"),
    ("r28_0_2", "sha256:r28"),
    ("r29_0_0_rc1", "sha256:rc1"),
    ("w_2025_08", "sha256:w08"),
    ("w_2025_07", "sha256:w07"),
    ("w_2025_07-arm64", "sha256:w07arm"),
    ("w_2025_06", "sha256:w06"),
    ("d_2025_02_21", "sha256:d21"),
    ("d_2025_02_20", "sha256:d20"),
    ("exp_w_2025_06_nosudo", "sha256:exp"),
    ("w_2025_05_c0040.001", "sha256:c40"),
    ("testing", "sha256:testing"),
];

fn config(images: &Value) -> Value {
    let mut config = json!({"images": {"source": {"type": "docker", "repository": "lsstsqre/sciplat-lab"}}});
    config["lab"] = example()["lab"].clone();
    for (key, value) in images.as_object().unwrap() {
        match key.as_str() {
            "dropdownMenu" => config["dropdownMenu"] = value.clone(),
            _ => config["images"][key] = value.clone(),
        }
    }
    config
}

fn known() -> KnownImages {
    KnownImages::default().repository(REPOSITORY, TAGS).lab_nodes(3)
}

fn menu(images: &Value) -> ImageMenu {
    site(&config(images)).menu(&ada(), &known()).unwrap().unwrap()
}

fn prepull(images: &Value) -> Vec<String> {
    let wanted = site(&config(images)).prepull(&known()).unwrap();
    let tag = |reference: &str| reference.strip_prefix(&format!("{REPOSITORY}:")).unwrap().to_owned();
    wanted.iter().map(|image| tag(&image.reference)).collect()
}

/// The names of the entries at the places for which `is` holds.
fn at(menu: &ImageMenu, is: impl Fn(&Entry) -> bool) -> Vec<&str> {
    menu.entries.iter().filter(|entry| is(entry)).map(|entry| entry.name.as_str()).collect()
}

fn in_rest(entry: &Entry) -> bool {
    entry.place == Place::Rest
}

fn hidden(menu: &ImageMenu, name: &str) -> Option<String> {
    let entry = menu.entries.iter().find(|entry| entry.name == name).unwrap();
    match &entry.place {
        Place::Hidden(reason) => Some(reason.clone()),
        _ => None,
    }
}

#[test]
fn the_menu_begins_with_the_recommended_image() {
    let menu = menu(&json!({}));
    let first = &menu.entries[0];
    assert_eq!((first.name.as_str(), first.recommended, &first.place), ("recommended", true, &Place::First));
    assert_eq!(first.label, "Recommended (Weekly 2025_07)");
    assert_eq!(first.reference, format!("{REPOSITORY}:recommended"));
    assert_eq!(first.digest, None, "the service pins the one that it knows");
    assert_eq!(at(&menu, |entry| entry.recommended), ["recommended"]);
}

#[test]
fn what_is_pulled_in_advance_comes_next_and_then_the_rest_by_type() {
    let menu = menu(&json!({}));
    // The weekly 2025_07 is there as the recommended image. The alias of the other weekly is not among the first
    // entries.
    let first = at(&menu, |entry| entry.place == Place::Automatic);
    assert_eq!(first, ["r29_0_0", "w_2025_08", "d_2025_02_21", "d_2025_02_20"]);
    let rest = [
        "latest_weekly",
        "r28_0_2",
        "w_2025_06",
        "w_2025_05_c0040.001",
        "r29_0_0_rc1",
        "exp_w_2025_06_nosudo",
        "testing",
    ];
    assert_eq!(at(&menu, in_rest), rest);
    let groups: Vec<_> = menu
        .entries
        .iter()
        .filter(|entry| in_rest(entry))
        .filter_map(|entry| entry.group.as_deref())
        .collect();
    let titles =
        ["Aliases", "Releases", "Weeklies", "Weeklies", "Release candidates", "Experimental", "Others"];
    assert_eq!(groups, titles);
    assert_eq!(menu.entries.len(), TAGS.len(), "hidden ones included");
}

#[test]
fn hidden_entries_say_why() {
    let menu =
        menu(&json!({"dropdownMenu": {"weekly": {"number": 2}, "release": {"cutoffVersion": "29.0.0"}}}));
    let reason = |name| hidden(&menu, name).unwrap();
    assert_eq!(reason("w_2025_07"), "It is listed by another name.");
    assert_eq!(reason("w_2025_07-arm64"), "It is only for the architecture arm64.");
    assert_eq!(reason("w_2025_06"), "The list has only the newest 2 of this type.");
    assert_eq!(reason("r28_0_2"), "The list begins with version 29.0.0.");
    assert_eq!(hidden(&menu, "testing"), None, "unknown tags are not filtered");
}

#[test]
fn filters_of_the_list_do_not_apply_to_what_is_pulled_in_advance() {
    let filters = json!({"release": {"number": 0}, "weekly": {"number": 0}, "daily": {"number": 0}});
    let menu = menu(&json!({"dropdownMenu": filters, "pin": ["r28_0_2"]}));
    let first = at(&menu, |entry| entry.place == Place::Automatic);
    assert_eq!(first, ["r29_0_0", "r28_0_2", "w_2025_08", "d_2025_02_21", "d_2025_02_20"]);
}

#[test]
fn with_a_cycle_only_its_images_are_offered_and_the_recommended_one() {
    let images = json!({"cycle": 40});
    let menu = menu(&images);
    assert_eq!(
        at(&menu, |entry| !matches!(entry.place, Place::Hidden(_))),
        ["recommended", "w_2025_05_c0040.001"]
    );
    assert_eq!(hidden(&menu, "r29_0_0").unwrap(), "It is of no SAL cycle; this site needs cycle 40.");
    assert_eq!(prepull(&images), ["recommended", "w_2025_05_c0040.001"]);
    let other = super::images::menu(&json!({"cycle": 41}));
    assert_eq!(
        hidden(&other, "w_2025_05_c0040.001").unwrap(),
        "It is of SAL cycle 40; this site needs cycle 41."
    );
}

#[test]
fn classes_name_the_newest_images() {
    let classes = |images: &Value| -> Vec<(String, String)> {
        menu(images).classes.into_iter().map(|class| (class.name, class.entry)).collect()
    };
    let newest =
        [("latest-release", "r29_0_0"), ("latest-weekly", "w_2025_08"), ("latest-daily", "d_2025_02_21")];
    let newest: Vec<_> = newest.map(|(name, entry)| (name.to_owned(), entry.to_owned())).into();
    assert_eq!(classes(&json!({})), newest, "an entry is called `recommended` already");
    assert_eq!(
        classes(&json!({"recommendedTag": "latest_weekly", "cycle": 40})),
        [("latest-weekly".to_owned(), "w_2025_05_c0040.001".to_owned())],
    );
    assert_eq!(classes(&json!({"recommendedTag": "none"})), newest);
}

#[test]
fn images_are_pulled_in_the_order_of_their_importance_and_each_digest_once() {
    // The weekly 2025_07 has the digest of the recommended image.
    let images = json!({"pin": ["r28_0_2", "w_2025_07-arm64", "w_2025_08", "gone"]});
    let wanted =
        ["recommended", "r29_0_0", "w_2025_08", "d_2025_02_21", "d_2025_02_20", "r28_0_2", "w_2025_07-arm64"];
    assert_eq!(prepull(&images), wanted);
    let none = json!({"numReleases": 0, "numWeeklies": 0, "numDailies": 0, "recommendedTag": "gone"});
    assert_eq!(prepull(&none), Vec::<String>::new());
}

#[test]
fn only_nodes_for_labs_need_the_images() {
    let wanted = site(&config(&json!({}))).prepull(&known()).unwrap();
    assert!(wanted.iter().all(|image| image.node_selector[0].value == "user-lab-pool"));
}

#[test]
fn a_recommended_tag_with_a_form_of_its_own_keeps_its_name() {
    let menu = menu(&json!({"recommendedTag": "w_2025_08"}));
    assert_eq!(menu.entries[0].label, "Weekly 2025_08");
    assert!(menu.entries[0].recommended);
}

#[test]
fn googles_registry_has_names_of_its_own() {
    let images = KnownImages::default().repository(
        "us-central1-docker.pkg.dev/science-images/sciplat/sciplat-lab",
        [("w_2025_08", "sha256:w08")],
    );
    let menu = site(&example()).menu(&ada(), &images).unwrap().unwrap();
    assert_eq!(menu.entries.len(), 1);
}

#[test]
fn without_images_the_menu_is_empty() {
    let site = site(&example());
    let menu = site.menu(&ada(), &KnownImages::default()).unwrap().unwrap();
    assert!(menu.entries.is_empty() && menu.classes.is_empty());
    assert!(site.prepull(&KnownImages::default()).unwrap().is_empty());
}

proptest! {
    #[test]
    fn every_image_is_in_the_menu_once(
        tags in proptest::collection::btree_set(
            "(w_2025_0[1-5]|r2[0-9]_0_0|d_2025_02_1[0-9]|exp_[a-c]|stable|recommended)(_c0040.001)?(-arm64)?", 0..20
        ),
        digests in proptest::collection::vec("[a-f]", 20),
        cycle in proptest::option::of(Just(40)),
        number in proptest::option::of(0..3),
    ) {
        let known: Vec<_> = tags.iter().map(String::as_str).zip(digests.iter().map(String::as_str)).collect();
        let known = KnownImages::default().repository(REPOSITORY, known);
        let dropdown = json!({"weekly": {"number": number}, "release": {"number": number}});
        let site = site(&config(&json!({"cycle": cycle, "dropdownMenu": dropdown})));
        let menu = site.menu(&ada(), &known).unwrap().unwrap();

        let names: Vec<_> = menu.entries.iter().map(|entry| entry.name.clone()).collect();
        prop_assert_eq!(names.len(), tags.len());
        prop_assert_eq!(names.iter().cloned().collect::<BTreeSet<_>>(), tags.clone());
        prop_assert_eq!(menu.entries.iter().position(|entry| entry.recommended), tags.contains("recommended").then_some(0));
        for entry in menu.entries.iter().filter(|entry| !matches!(entry.place, Place::Hidden(_))) {
            prop_assert!(!entry.name.contains("-arm64") && (entry.group.is_some() || entry.recommended));
        }
        for class in &menu.classes {
            prop_assert!(names.contains(&class.entry) && !names.contains(&class.name));
        }

        let wanted = site.prepull(&known).unwrap();
        let digest = |reference: &str| {
            let at = tags.iter().position(|tag| reference == format!("{REPOSITORY}:{tag}"));
            digests[at.unwrap()].clone()
        };
        let pulled: BTreeSet<_> = wanted.iter().map(|image| digest(&image.reference)).collect();
        prop_assert_eq!(pulled.len(), wanted.len(), "each digest once");
        prop_assert!(wanted.len() <= 7, "one recommended, one release, two weeklies, three dailies");
    }
}

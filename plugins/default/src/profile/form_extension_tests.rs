//! Keys of profiles that KubeSpawner ignores, and that the form extension jupyterhub-fancy-profiles and sites' filters of
//! profiles read.

use serde_json::{Value, json};
use wasmspawner_sdk::User;
use wasmspawner_sdk::form::{Choice, Field, FieldKind};
use wasmspawner_sdk::pod::Customization;
use wasmspawner_sdk::testing::TestKit;

use crate::DefaultPolicy;

fn site(profiles: &Value) -> TestKit<DefaultPolicy> {
    TestKit::new(&json!({"profile_list": profiles})).unwrap()
}

fn shown(field: &Field) -> &[Choice] {
    match &field.kind {
        FieldKind::Select(input) | FieldKind::Radio(input) => &input.choices,
        _ => panic!("{field:?} has no choices"),
    }
}

fn image(lab: &Customization) -> &str {
    lab.image.as_ref().map_or("", |image| &image.reference)
}

fn of_image(reference: &str, extra: &Value) -> Value {
    let mut entry = json!({"display_name": reference, "kubespawner_override": {"image": reference}});
    entry.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
    entry
}

#[test]
fn texts_of_choices_and_of_what_is_typed_are_shown() {
    let unlisted = json!({
        "enabled": true,
        "display_name": "Custom image",
        "display_name_in_choices": "Bring your own",
        "description_in_choices": "From any registry",
        "kubespawner_override": {"image": "{value}"}
    });
    let option = json!({
        "display_name": "Image",
        "description": "The software of the lab",
        "choices": {"a": of_image("a:1", &json!({"description": "Python", "slug": "first"}))},
        "unlisted_choice": unlisted
    });
    let site = site(&json!([{"display_name": "P", "profile_options": {"image": option}}]));
    let fields = site.fields(&User::named("ada")).unwrap();
    let found: Vec<_> =
        shown(&fields[1]).iter().map(|choice| (&*choice.value, choice.description.as_deref())).collect();
    assert_eq!(found, [("a", Some("Python")), ("unlisted-choice", Some("From any registry"))]);
    assert_eq!(fields[1].help.as_deref(), Some("The software of the lab"));
}

#[test]
fn only_members_see_a_profile_and_its_choices() {
    let choices = json!({
        "a": of_image("a:1", &json!({"allowed_groups": ["org:GPU-Team"]})),
        "b": of_image("b:1", &json!({})),
        "c": of_image("c:1", &json!({"allowed_groups": []}))
    });
    let unlisted =
        json!({"enabled": true, "allowed_groups": ["typists"], "kubespawner_override": {"image": "{value}"}});
    let options = json!({"image": {"choices": choices, "unlisted_choice": unlisted}});
    let site = site(&json!([
        {"display_name": "P", "profile_options": options},
        {"display_name": "Q", "allowed_groups": ["staff"]},
        {"display_name": "R", "allowed_groups": []}
    ]));
    let ada = User::named("ada");
    let seen = |user: &User| {
        let fields = site.fields(user).unwrap();
        let names =
            |field: &Field| shown(field).iter().map(|one| one.value.clone()).collect::<Vec<_>>().join(" ");
        format!("{}; {}", names(&fields[0]), names(&fields[1]))
    };
    assert_eq!(seen(&ada), "p; b");
    assert_eq!(seen(&ada.clone().in_group("ORG:gpu-team").in_group("staff")), "p q; a b");
    assert_eq!(seen(&ada.clone().in_group("typists")), "p; b unlisted-choice");
    for (submission, groups, allowed) in [
        (json!({"profile": "p", "image": "a"}), "org:gpu-team", true),
        (json!({"profile": "p", "image": "a"}), "staff", false),
        (json!({"profile": "p", "image": "c"}), "staff", false),
        (json!({"profile": "p", "image--unlisted-choice": "x:1"}), "typists", true),
        (json!({"profile": "p", "image--unlisted-choice": "x:1"}), "staff", false),
        (json!({"profile": "q"}), "staff", true),
        (json!({"profile": "q"}), "typists", false),
        (json!({"profile": "r"}), "staff", false),
    ] {
        let user = ada.clone().in_group(groups);
        assert_eq!(site.parse(&user, &submission).is_ok(), allowed, "{submission} {groups}");
        // Options that were never parsed give no more.
        let typed = submission.get("image--unlisted-choice").is_some();
        let built = site.customize(&user, &submission);
        assert!(
            built.is_ok() == allowed || typed && image(&built.unwrap()) != "x:1",
            "{submission} {groups}"
        );
    }
}

#[test]
fn the_first_default_that_the_user_sees_counts() {
    let profiles = json!([
        of_image("full:1", &json!({"default": true, "allowed_groups": ["full"]})),
        of_image("base:1", &json!({"default": true})),
        {"display_name": "O", "profile_options": {"image": {"choices": {
            "a": of_image("a:1", &json!({"default": true, "allowed_groups": ["full"]})),
            "b": of_image("b:1", &json!({})),
            "c": of_image("c:1", &json!({"default": true}))
        }}}}
    ]);
    let site = site(&profiles);
    let ada = User::named("ada");
    for (user, options, expected) in [
        (ada.clone(), json!({}), "base:1"),
        (ada.clone().in_group("full"), json!({}), "full:1"),
        (ada.clone(), json!({"profile": "o"}), "c:1"),
        (ada.in_group("full"), json!({"profile": "o"}), "a:1"),
    ] {
        assert_eq!(image(&site.customize(&user, &options).unwrap()), expected, "{options}");
    }
}

#[test]
fn a_profile_in_which_the_user_could_choose_nothing_is_not_offered() {
    let choices = json!({"a": of_image("a:1", &json!({"allowed_groups": ["gpu"]}))});
    let site = site(&json!([
        {"display_name": "P", "profile_options": {"image": {"choices": choices}}},
        {"display_name": "Q"}
    ]));
    let (ada, grace) = (User::named("ada"), User::named("grace").in_group("gpu"));
    assert_eq!(choices_of(&site, &ada), ["q"]);
    assert_eq!(choices_of(&site, &grace), ["p", "q"]);
}

fn choices_of(site: &TestKit<DefaultPolicy>, user: &User) -> Vec<String> {
    shown(&site.fields(user).unwrap()[0]).iter().map(|choice| choice.value.clone()).collect()
}

#[test]
fn an_option_for_others_has_no_effect() {
    let gpu =
        json!({"allowed_groups": ["gpu"], "choices": {"one": {"kubespawner_override": {"image": "gpu:1"}}}});
    let site = site(
        &json!([{"display_name": "P", "kubespawner_override": {"image": "p:1"}, "profile_options": {"gpu": gpu}}]),
    );
    let (ada, grace) = (User::named("ada"), User::named("grace").in_group("gpu"));
    assert_eq!(image(&site.customize(&ada, &json!({})).unwrap()), "p:1");
    assert_eq!(image(&site.customize(&grace, &json!({})).unwrap()), "gpu:1");
    assert_eq!(site.fields(&ada).unwrap().len(), 1);
}

#[test]
fn keys_without_effect_are_taken_with_a_warning() {
    let profile = json!({"display_name": "P", "profile_options": {"image": {
        "dynamic_image_building": {"enabled": true},
        "choices": {"a": {"kubespawner_override": {"default": true}}, "b": {}}
    }}});
    let config = json!({"profile_list": [profile]}).to_string();
    let ((), warnings) = wasmspawner_sdk::config::check(&config, |config| {
        drop(<DefaultPolicy as wasmspawner_sdk::Policy>::from_config(config));
    })
    .unwrap();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("dynamic_image_building: no images are built here"), "{warnings:?}");
    assert!(
        warnings[1].contains("/a/kubespawner_override/default: has no effect in an override"),
        "{warnings:?}"
    );
    let both = json!({"profile_list": [{"display_name": "P", "groups": ["a"], "allowed_groups": ["b"]}]});
    let problems = TestKit::<DefaultPolicy>::new(&both).err().unwrap();
    assert_eq!(problems[0].field, "/profile_list/0/groups");
}

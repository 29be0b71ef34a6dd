//! Findings of `tests/profiles`, the comparison with KubeSpawner 7.1.

use serde_json::{Value, json};
use wasmspawner_sdk::User;
use wasmspawner_sdk::pod::{Customization, EnvValue};
use wasmspawner_sdk::testing::TestKit;

use crate::DefaultPolicy;

fn site(profile: &Value, site: &Value) -> TestKit<DefaultPolicy> {
    let mut config = site.clone();
    config["profile_list"] = json!([profile]);
    TestKit::new(&config).unwrap()
}

/// The lab of a profile with this override, and with a further one in an option.
fn lab(profile: &Value, option: &Value) -> Customization {
    let options = json!({"o": {"choices": {"c": {"kubespawner_override": option}}}});
    let profile = json!({"display_name": "P", "kubespawner_override": profile, "profile_options": options});
    let site = site(&profile, &json!({"command": ["site"], "args": ["--site"], "env": {"A": "site"}}));
    site.customize(&User::named("ada"), &json!({})).unwrap()
}

fn env(lab: &Customization) -> Vec<(&str, &str)> {
    let mut literals = Vec::new();
    for variable in &lab.env {
        let EnvValue::Literal(text) = &variable.value else { panic!("{variable:?}") };
        literals.push((variable.name.as_str(), text.as_str()));
    }
    literals
}

/// A site with a typed text beside a listed choice, and a typed text without any.
fn typing(pattern: &str) -> TestKit<DefaultPolicy> {
    let typed = json!({"enabled": true, "validation_regex": pattern,
        "kubespawner_override": {"environment": {"TYPED": "{value}"}}});
    let listed = json!({"c": {"kubespawner_override": {"environment": {"LISTED": "c"}}}});
    let options = json!({"o": {"choices": listed, "unlisted_choice": typed}});
    site(&json!({"display_name": "P", "profile_options": options}), &json!({}))
}

fn given(site: &TestKit<DefaultPolicy>, submission: &Value) -> Vec<(String, String)> {
    let ada = User::named("ada");
    let options = site.parse(&ada, submission).unwrap();
    let lab = site.customize_with(&ada, &options).unwrap();
    env(&lab).into_iter().map(|(name, text)| (name.to_owned(), text.to_owned())).collect()
}

#[test]
fn an_empty_text_is_no_choice() {
    let site = typing("[a-z]+");
    for submission in [
        json!({"profile": ""}),
        json!({"profile": "p", "o": "", "o--unlisted-choice": ""}),
        json!({"profile": "p", "profile-option-p--o": "", "profile-option-p--o--unlisted-choice": ""}),
        json!({"profile": "", "o": "c", "o--unlisted-choice": ""}),
    ] {
        assert_eq!(given(&site, &submission), [("LISTED".into(), "c".into())], "{submission}");
    }
}

#[test]
fn a_typed_text_counts_before_a_choice() {
    let site = typing("[a-z]+");
    for submission in [
        json!({"o": "c", "o--unlisted-choice": "abc"}),
        json!({"profile": "p", "profile-option-p--o": "c", "profile-option-p--o--unlisted-choice": "abc"}),
    ] {
        assert_eq!(given(&site, &submission), [("TYPED".into(), "abc".into())], "{submission}");
    }
    let around = json!({"o": "c", "o--unlisted-choice": "ABC"});
    assert!(site.parse(&User::named("ada"), &around).is_err());
}

#[test]
fn an_empty_expression_matches_everything() {
    assert_eq!(given(&typing(""), &json!({"o--unlisted-choice": "A/b"})), [("TYPED".into(), "A/b".into())]);
}

#[test]
fn a_text_that_can_only_be_typed_may_be_called_unlisted() {
    let typed = json!({"enabled": true, "kubespawner_override": {"environment": {"TYPED": "{value}"}}});
    let options = json!({"o": {"unlisted_choice": typed}});
    let site = site(&json!({"display_name": "P", "profile_options": options}), &json!({}));
    let submission = json!({"o": "unlisted-choice", "o--unlisted-choice": "abc"});
    assert_eq!(given(&site, &submission), [("TYPED".into(), "abc".into())]);
}

#[test]
fn a_program_runs_after_the_entry_point_of_its_image() {
    let texts = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    let none = json!({});
    for (profile, option, command, args) in [
        (json!({"cmd": ["a", "b"]}), none.clone(), None, texts(&["a", "b", "--site"])),
        (json!({"cmd": "a", "args": ["x"]}), json!({"args": ["y"]}), None, texts(&["a", "y"])),
        (json!({"args": ["x"]}), json!({"cmd": ["a"]}), None, texts(&["a", "x"])),
        (json!({"args": ["x"]}), none.clone(), texts(&["site"]), texts(&["x"])),
        (json!({"cmd": null, "args": ["x"]}), none.clone(), None, None),
    ] {
        let lab = lab(&profile, &option);
        assert_eq!((lab.command, lab.args), (command, args), "{profile} {option}");
    }
}

#[test]
fn a_guarantee_of_nothing_is_none() {
    let lab = lab(
        &json!({"cpu_guarantee": 1, "mem_guarantee": "1G"}),
        &json!({"cpu_guarantee": 0, "mem_guarantee": 0}),
    );
    let resources = lab.resources.unwrap();
    assert_eq!((resources.cpu_request_millis, resources.memory_request_bytes), (None, None));
}

#[test]
fn the_environment_counts_before_settings() {
    let url = "JUPYTERHUB_DEFAULT_URL";
    for (profile, option, expected) in [
        (json!({"environment": {url: "/env"}, "default_url": "/set"}), json!({}), Some("/env")),
        (json!({"environment": {url: "/env"}}), json!({"default_url": "/set"}), Some("/env")),
        (
            json!({"environment": {url: "/env"}}),
            json!({"environment": {url: null}, "default_url": "/set"}),
            Some("/set"),
        ),
        (json!({"default_url": "/set"}), json!({"default_url": ""}), None),
        (json!({"default_url": "/set"}), json!({"environment": {url: null}}), Some("/set")),
    ] {
        let lab = lab(&profile, &option);
        let found = env(&lab).into_iter().find(|(name, _)| *name == url).map(|(_, text)| text);
        assert_eq!(found, expected, "{profile} {option}");
    }
}

#[test]
fn a_slug_is_not_empty() {
    let wrong = TestKit::<DefaultPolicy>::new(&json!({"profile_list": [{"display_name": "P", "slug": ""}]}));
    let found = wrong.err().unwrap();
    assert_eq!(
        (found[0].field.as_str(), found[0].message.as_str()),
        ("/profile_list/0/slug", "must not be empty")
    );
}

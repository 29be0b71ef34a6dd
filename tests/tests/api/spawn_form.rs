//! `GET /spawn-form/{username}`

use http::Method;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::guests;
use wasmspawner_tests::service::Service;

use crate::BINARY;

/// A site with a form: the policy `default` with its example configuration.
fn site(config: &mut Value) {
    with_policy(config, include_str!("../../../plugins/default/example.json"));
}

fn with_policy(config: &mut Value, example: &str) {
    let example: Value = serde_json::from_str(example).unwrap();
    config["policies"] =
        json!([{ "name": "site", "path": guests::component("policy-default"), "config": example }]);
}

#[tokio::test]
async fn the_form_is_an_html_fragment() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    let form = ada.get(&format!("{PREFIX}/spawn-form/ada")).await.unwrap();
    assert_eq!((form.status, form.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(form.body.contains(r#"name="size""#) && !form.body.contains("<form"), "{}", form.body);
    let named = ada.get(&format!("{PREFIX}/spawn-form/ada/servers/x")).await.unwrap();
    assert_eq!(named.status, 200);
}

#[tokio::test]
async fn only_the_user_the_hub_and_administrators_get_the_form() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let path = format!("{PREFIX}/spawn-form/ada");
    for allowed in [service.admin().unwrap(), service.hub().unwrap(), service.user("ada").unwrap()] {
        assert_eq!(allowed.get(&path).await.unwrap().status, 200);
    }
    let other = service.user("bob").unwrap().get(&path).await.unwrap();
    assert_eq!(other.problem().unwrap(), "403 permission_denied");
}

/// The form of a server that was last started with these options.
async fn form_after(client: &Client, options: Value) -> Answer {
    post(client, &format!("{PREFIX}/spawn-form/ada"), &json!({ "last_options": options })).await
}

async fn post(client: &Client, path: &str, body: &Value) -> Answer {
    client.send(client.request(Method::POST, path).json(body)).await.unwrap()
}

#[tokio::test]
async fn the_form_begins_with_the_choices_of_the_last_start() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    let first = ada.get(&format!("{PREFIX}/spawn-form/ada")).await.unwrap().body;
    assert!(is_checked(&first, "size", "small") && !is_checked(&first, "size", "medium"), "{first}");
    let options = json!({ "size": ["medium"], "image": "scipy", "debug": "true", "of another form": "x" });
    let form = form_after(&ada, options).await;
    assert_eq!((form.status, form.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(is_checked(&form.body, "size", "medium") && !is_checked(&form.body, "size", "small"));
    assert!(is_checked(&form.body, "debug", "true"), "{}", form.body);
    assert!(!form.body.contains("not available any more") && !form.body.contains("of another form"));
    let without = form_after(&ada, json!({})).await.body;
    assert_eq!(without, first);

    let gone = form_after(&ada, json!({ "size": "<huge>", "debug": "true" })).await.body;
    assert!(is_checked(&gone, "size", "small") && is_checked(&gone, "debug", "true"), "{gone}");
    let line =
        "Your last choice, &quot;&lt;huge&gt;&quot;, is not available any more. This is the default instead.";
    assert_eq!(gone.matches(line).count(), 1, "{gone}");
}

/// True if the radio button with this value is the chosen one.
fn is_checked(form: &str, name: &str, value: &str) -> bool {
    let mut inputs = form.split("<input ").map(|rest| rest.split('>').next().unwrap_or_default());
    let wanted = [format!(r#"name="{name}""#), format!(r#"value="{value}""#)];
    inputs.any(|input| wanted.iter().all(|part| input.contains(part)) && input.contains(" checked"))
}

#[tokio::test]
async fn a_site_may_want_a_form_that_remembers_nothing() {
    let service = Service::start_with(BINARY, |config| {
        site(config);
        config["form"] = json!({ "remember": false });
    });
    let service = service.await.unwrap();
    let ada = service.user("ada").unwrap();
    let first = ada.get(&format!("{PREFIX}/spawn-form/ada")).await.unwrap().body;
    assert_eq!(form_after(&ada, json!({ "size": "medium", "image": "gone" })).await.body, first);
}

#[tokio::test]
async fn the_last_choices_are_read_like_a_spawn() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    let path = format!("{PREFIX}/spawn-form/ada");
    let refused = post(&ada, &path, &json!({ "last_options": { "size": null }, "more": 1 })).await;
    assert_eq!(refused.problem().unwrap(), "422 invalid_option");
    assert_eq!(refused.json().unwrap()["detail"][0]["loc"], json!(["body", "last_options", "size"]));
    let other = post(&service.user("bob").unwrap(), &path, &json!({})).await;
    assert_eq!(other.problem().unwrap(), "403 permission_denied");
    let named = post(&ada, &format!("{path}/servers/x"), &json!({})).await;
    assert_eq!(named.status, 200);
}

#[tokio::test]
async fn a_submission_is_checked_by_the_policy() {
    let service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    for options in [json!({ "size": "gigantic" }), json!({ "colour": "red" })] {
        let answer = ada.spawn_with("ada", &json!({ "options": options })).await.unwrap();
        assert_eq!(answer.problem().unwrap(), "422 invalid_option");
        let key = options.as_object().unwrap().keys().next().unwrap();
        assert_eq!(answer.json().unwrap()["detail"][0]["loc"], json!(["body", "options", key]));
    }
    let submission = json!({ "options": { "size": ["medium"], "image": ["scipy"], "debug": "true" } });
    assert_eq!(ada.spawn_with("ada", &submission).await.unwrap().status, 303);
    let lab = ada.lab("ada").await.unwrap().json().unwrap();
    assert_eq!(lab["options"]["size"], "medium", "{lab:#}");
    assert_eq!(lab["options"]["debug"], true, "{lab:#}");
}

#[tokio::test]
async fn options_of_the_api_are_held_to_the_pattern_and_step_of_their_field() {
    let policy = json!({
        "images": [{ "name": "lab", "reference": "lab:1" }],
        "options": [
            { "name": "code", "label": "Course", "kind": "text", "pattern": "[A-Z]{3}" },
            { "name": "disk", "label": "Disk", "kind": "number", "step": 0.1 },
        ],
    });
    let site = |config: &mut Value| with_policy(config, &policy.to_string());
    let service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    // The spawner class submits lists of texts, programs submit JSON.
    for options in [
        json!({ "code": ["'; DROP TABLE"], "disk": ["0.35"] }),
        json!({ "code": "'; DROP TABLE", "disk": 0.35 }),
    ] {
        let answer = ada.spawn_with("ada", &json!({ "options": options })).await.unwrap();
        assert_eq!(answer.problem().unwrap(), "422 invalid_option");
        let body = answer.json().unwrap();
        assert_eq!(
            [&body["detail"][0]["msg"], &body["detail"][1]["msg"]],
            [
                "Course cannot be \"'; DROP TABLE\": it must match the pattern [A-Z]{3}",
                "Disk cannot be 0.35: it must be a multiple of 0.1",
            ]
        );
    }
    let good = json!({ "options": { "code": "ABC", "disk": 0.3 } });
    assert_eq!(ada.spawn_with("ada", &good).await.unwrap().status, 303);
}

#[tokio::test]
async fn a_site_can_use_the_profiles_of_kubespawner() {
    let profiles = include_str!("../../../plugins/default/example-profiles.json");
    let site = |config: &mut Value| {
        with_policy(config, profiles);
        // The simulated node has no labels.
        config["policies"][0]["config"]["node_selector"] = json!({});
        config["policies"][0]["grants"] = json!({ "metadata": ["example.org/"] });
    };
    let service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    let form = ada.get(&format!("{PREFIX}/spawn-form/ada")).await.unwrap();
    assert!(form.body.contains(r#"name="profile-option-custom--image--unlisted-choice""#), "{}", form.body);
    let choose = |image: &str| json!({ "options": { "profile": "custom", "image--unlisted-choice": image } });

    let refused = ada.spawn_with("ada", &choose("docker.io/evil/lab:1")).await.unwrap();
    assert_eq!(refused.problem().unwrap(), "422 invalid_option");
    let place = json!(["body", "options", "image--unlisted-choice"]);
    assert_eq!(refused.json().unwrap()["detail"][0]["loc"], place);

    assert_eq!(ada.spawn_with("ada", &choose("quay.io/ada/lab:1")).await.unwrap().status, 303);
    ada.events("ada").await.unwrap().to_end().await.unwrap();
    let lab = ada.lab("ada").await.unwrap().json().unwrap();
    assert_eq!(lab["status"], "running", "{lab:#}");
    assert_eq!(lab["image"]["reference"], "quay.io/ada/lab:1", "{lab:#}");
    assert_eq!(lab["env"]["CUSTOM_IMAGE"], "quay.io/ada/lab:1", "{lab:#}");
    assert_eq!(lab["quotas"]["limits"]["memory"], 4_i64 << 30, "{lab:#}");
}

#[tokio::test]
async fn text_of_a_user_is_not_expanded_as_a_template() {
    let policy = json!({
        "images": [{ "name": "lab", "reference": "lab:1" }],
        "env": { "WHO": "{username}" },
        "options": [{ "name": "note", "kind": "text", "env": "NOTE" }],
    });
    let site = |config: &mut Value| with_policy(config, &policy.to_string());
    let service = Service::start_with(BINARY, site).await.unwrap();
    let ada = service.user("ada").unwrap();
    let options = json!({ "options": { "note": "{username} {{x}} {nobody}" } });
    assert_eq!(ada.spawn_with("ada", &options).await.unwrap().status, 303);
    ada.events("ada").await.unwrap().to_end().await.unwrap();
    let lab = ada.lab("ada").await.unwrap().json().unwrap();
    assert_eq!(lab["env"]["WHO"], "ada", "{lab:#}");
    assert_eq!(lab["env"]["NOTE"], "{username} {{x}} {nobody}", "{lab:#}");
}

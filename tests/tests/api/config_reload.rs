//! `POST /config/reload`, SIGHUP, and changes of the file

use http::Method;
use serde_json::{Value, json};
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::service::Service;

use crate::BINARY;

type Mistake = fn(&mut Value);

async fn reload(admin: &Client) -> Answer {
    admin.send(admin.request(Method::POST, &format!("{PREFIX}/config/reload"))).await.unwrap()
}

async fn env_of(user: &Client, name: &str) -> Value {
    user.spawn_to_end(name).await.unwrap();
    user.lab(name).await.unwrap().json().unwrap()["env"].clone()
}

#[tokio::test]
async fn a_reload_uses_what_it_can_and_names_what_needs_a_restart() {
    let service = Service::start(BINARY).await.unwrap();
    let admin = service.admin().unwrap();
    let unchanged = reload(&admin).await.json().unwrap();
    assert_eq!((&unchanged["applied"], &unchanged["need_restart"]), (&json!([]), &json!([])));
    service
        .reconfigure(|config| {
            config["lab"]["env"]["COLOUR"] = "green".into();
            config["http"]["max_body_bytes"] = 4096.into();
            config["auth"]["identities"] = json!({ "default": { "uid": 4242, "gid": 4242 } });
        })
        .unwrap();
    for _ in 0..2 {
        let answer = reload(&admin).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        let changes = answer.json().unwrap();
        assert_eq!(changes["need_restart"], json!(["http.max_body_bytes"]), "{changes:#}");
        assert_eq!(changes["policies"][0]["name"], "stagehand");
    }
    let ada = service.user("ada").unwrap();
    assert_eq!(env_of(&ada, "ada").await["COLOUR"], "green");
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["uid"], 4242);
    let long = json!({ "env": { "LONG": "x".repeat(8192) } });
    let bob = service.user("bob").unwrap();
    assert_eq!(
        bob.spawn_with("bob", &long).await.unwrap().status,
        303,
        "the old limit holds until a restart"
    );
}

#[tokio::test]
async fn a_reload_with_one_mistake_changes_nothing() {
    let service = Service::start(BINARY).await.unwrap();
    let admin = service.admin().unwrap();
    let good = std::fs::read(service.config_file()).unwrap();
    let mistakes: [(&str, Mistake); 4] = [
        ("limits.spawn", |config| config["limits"]["spawn"] = "-1s".into()),
        ("lab.colour", |config| config["lab"]["colour"] = "red".into()),
        ("stagehand", |config| config["policies"][0]["path"] = "missing.wasm".into()),
        ("tokens", |config| config["auth"]["static"]["tokens_file"] = "/missing/tokens.yaml".into()),
    ];
    for (named, mistake) in mistakes {
        service
            .reconfigure(|config| {
                config["lab"]["env"]["COLOUR"] = "green".into();
                mistake(config);
            })
            .unwrap();
        let refused = reload(&admin).await;
        assert_eq!(refused.problem().unwrap(), "409 reload_failed");
        assert!(refused.body.contains(named), "{named}: {}", refused.body);
        std::fs::write(service.config_file(), &good).unwrap();
    }
    std::fs::write(service.config_file(), "{").unwrap();
    assert_eq!(reload(&admin).await.problem().unwrap(), "409 reload_failed");
    let ada = service.user("ada").unwrap();
    assert!(env_of(&ada, "ada").await.get("COLOUR").is_none());
}

#[tokio::test]
async fn only_administrators_reload() {
    let service = Service::start(BINARY).await.unwrap();
    for other in [service.hub().unwrap(), service.user("ada").unwrap()] {
        assert_eq!(reload(&other).await.problem().unwrap(), "403 permission_denied");
    }
    assert_eq!(reload(&service.stranger()).await.status, 401);
}

#[tokio::test]
async fn a_lab_keeps_its_names_when_the_templates_change_and_is_stopped_under_them() {
    let service = Service::start(BINARY).await.unwrap();
    let (admin, ada) = (service.admin().unwrap(), service.user("ada").unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    service.reconfigure(|config| config["names"]["namespace"] = "elsewhere-{user_server}".into()).unwrap();
    // The reload may find no change, because the service has seen it already. Its log has the same words in either
    // case.
    assert_eq!(reload(&admin).await.status, 200);
    service.logged(r#"applied="names.namespace""#).await.unwrap();
    assert_eq!(ada.lab("ada").await.unwrap().json().unwrap()["status"], "running");
    ada.stop_to_end("ada").await.unwrap();
    let orphans = admin.get(&format!("{PREFIX}/orphans")).await.unwrap().json().unwrap();
    assert_eq!(orphans, json!([]), "{orphans:#}");
    ada.spawn_to_end("ada").await.unwrap();
    let namespaces: kube::Api<k8s_openapi::api::core::v1::Namespace> =
        kube::Api::all(service.cluster().await.unwrap());
    assert!(namespaces.get_opt("elsewhere-ada").await.unwrap().is_some());
}

#[tokio::test]
async fn no_spawn_fails_while_the_configuration_is_reloaded_again_and_again() {
    let service = Service::start_with(BINARY, |config| {
        config["policies"][0]["limits"] = json!({ "deadline_ms": 10_000 });
    })
    .await
    .unwrap();
    let admin = service.admin().unwrap();
    let spawns = async {
        for number in 0..40 {
            let name = format!("user-{number}");
            let events = service.user(&name).unwrap().spawn_to_end(&name).await.unwrap();
            assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
        }
    };
    let reloads = async {
        for number in 0.. {
            service.reconfigure(|config| config["lab"]["env"]["NUMBER"] = number.to_string().into()).unwrap();
            assert_eq!(reload(&admin).await.status, 200);
        }
    };
    tokio::select! { () = spawns => {}, () = reloads => {} }
}

#[tokio::test]
async fn a_changed_file_is_used_without_being_asked() {
    let service = Service::start(BINARY).await.unwrap();
    service.reconfigure(|config| config["lab"]["env"]["COLOUR"] = "green".into()).unwrap();
    service.logged("lab.env.COLOUR").await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(env_of(&ada, "ada").await["COLOUR"], "green");
}

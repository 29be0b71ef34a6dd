//! Blueprints of repositories and of users, which the site has not written. Their providers may misbehave in any way.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{Html, IntoResponse, Redirect, Response};
use axum::routing::get;
use http::{HeaderMap, Method, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::service::Service;

use super::running::until;
use crate::BINARY;

/// A git server, and the authorization of each request to it.
#[derive(Clone, Default)]
struct Git(Arc<Mutex<HashMap<String, String>>>);

const LAB: &str = "
displayName: The project
env: {PROJECT: one}
volumes: [{name: scratch, mountPath: /scratch, emptyDir: {}}]
initContainers: [{name: fetch, command: [git, clone, x], mounts: [{volume: scratch, mountPath: /scratch}]}]
";

impl Git {
    async fn start() -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let git = Self::default();
        let routes = Router::new().route("/{*path}", get(answer)).with_state(git.clone());
        tokio::spawn(async move { axum::serve(listener, routes).await });
        (git, url)
    }

    /// The authorization of the request for this path. Empty if the request had none; `None` if there was no request.
    fn asked(&self, path: &str) -> Option<String> {
        self.0.lock().unwrap().get(path).cloned()
    }
}

async fn answer(State(git): State<Git>, Path(path): Path<String>, headers: HeaderMap) -> Response {
    let authorization =
        headers.get("authorization").map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    git.0.lock().unwrap().insert(path.clone(), authorization);
    let name = path.split('/').nth(1).unwrap_or_default();
    match name {
        "good" => LAB.into_response(),
        "extends" => "extends: [base]\nenv: {PROJECT: two}\n".into_response(),
        "climbs" => "extends: [staff-only]\n".into_response(),
        "html" => Html("<title>Sign in</title>").into_response(),
        "elsewhere" => Redirect::temporary("http://127.0.0.1:1/secret").into_response(),
        "private" => StatusCode::FORBIDDEN.into_response(),
        "broken" => StatusCode::BAD_GATEWAY.into_response(),
        "huge" => "x".repeat(1 << 20).into_response(),
        "binary" => vec![0xff_u8, 0xfe].into_response(),
        "bomb" => {
            let lines = (1..30).map(|at| format!("a{at}: &a{at} [*a{}, *a{}]", at - 1, at - 1));
            format!("a0: &a0 [x, x]\n{}", lines.collect::<Vec<_>>().join("\n")).into_response()
        }
        "nfs" => "volumes: [{name: v, mountPath: /v, nfs: {server: s, path: /}}]".into_response(),
        "claim" => "volumes: [{name: v, mountPath: /v, claim: {name: of-grace}}]".into_response(),
        "image" => "initContainers: [{name: i, image: evil, command: [x]}]".into_response(),
        "platform" => "platform: true".into_response(),
        "silent" => std::future::pending().await,
        _ => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn with_git(send_token: bool) -> (Service, Git) {
    let (git, url) = Git::start().await;
    let service = Service::start_with(BINARY, |config| {
        config["blueprints"] = json!({
            "site": {
                "base": { "env": { "BASE": "1", "PROJECT": "of the site" } },
                "staff-only": { "groups": ["staff"] },
            },
            "providers": {
                "repository": { "url": format!("{url}/{{repo}}/raw/lab.yaml"), "send_token": send_token },
                "user": { "url": format!("{url}/people/{{blueprint}}/{{username}}.yaml") },
                "timeout": "20s",
            },
        });
    });
    (service.await.unwrap(), git)
}

async fn spawn(client: &Client, user_string: &str) -> Answer {
    let user = user_string.split('~').next().unwrap();
    let request = client.request(Method::POST, &format!("{PREFIX}/labs/{user}/spawn"));
    client.send(request.json(&json!({ "user_string": user_string }))).await.unwrap()
}

fn lab_at(answer: &Answer) -> String {
    answer.header("location").strip_prefix(&format!("{PREFIX}/labs/")).unwrap().to_owned()
}

#[tokio::test]
async fn a_lab_is_as_its_repository_says_also_after_a_restart_and_in_its_kernels() {
    let (mut service, git) = with_git(false).await;
    let ada = service.user("ada").unwrap();
    let started = spawn(&ada, "ada~repo=org/good").await;
    assert_eq!(started.status, 303, "{started:?}");
    let place = lab_at(&started);
    assert!(place.starts_with("ada/servers/org-good-"), "{place}");
    let lab = until(&ada, &place, |lab| lab["status"] == "running").await;
    assert_eq!((&lab["env"]["PROJECT"], &lab["options"]["repo"]), (&json!("one"), &json!("org/good")));
    assert_eq!(
        git.asked("org/good/raw/lab.yaml").as_deref(),
        Some(""),
        "no token is sent unless the site says so"
    );
    assert_eq!(spawn(&ada, "ada~repo=org/good").await.header("location"), started.header("location"));

    // The provider is not asked again for children of the lab.
    service.crash_and_restart().await.unwrap();
    git.0.lock().unwrap().clear();
    let ada = service.user("ada").unwrap();
    super::kernels::run(&ada, &place, "k1").await;
    assert_eq!(git.asked("org/good/raw/lab.yaml"), None);

    // The blueprint is combined with one of the site, and chosen by the form's field.
    let both = spawn(&ada, "ada~blueprint=base~repo=org/good").await;
    let lab = until(&ada, &lab_at(&both), |lab| lab["status"] == "running").await;
    assert_eq!((&lab["env"]["PROJECT"], &lab["env"]["BASE"]), (&json!("one"), &json!("1")));
    let form = ada.get(&format!("{PREFIX}/spawn-form/ada")).await.unwrap().body;
    assert!(form.contains("name=\"repo\""), "{form}");
    let body = json!({ "options": { "repo": "org/extends", "blueprint": "" } });
    assert_eq!(ada.spawn_with("ada", &body).await.unwrap().status, 303);
    let lab = until(&ada, "ada", |lab| lab["status"] == "running").await;
    assert_eq!((&lab["env"]["PROJECT"], &lab["env"]["BASE"]), (&json!("two"), &json!("1")));

    // A user's own blueprint is used if the site has none of the name.
    let own = spawn(&ada, "ada~blueprint=good").await;
    assert_eq!(lab_at(&own), "ada/servers/good");
    until(&ada, "ada/servers/good", |lab| lab["env"]["PROJECT"] == "one").await;
    assert!(git.asked("people/good/ada.yaml").is_some());
    let resolved = async |name: &str| ada.get(&format!("{PREFIX}/blueprints/ada/resolved/{name}")).await;
    let of_user = resolved("good").await.unwrap().json().unwrap();
    assert_eq!(
        (&of_user["spec"]["env"]["PROJECT"], &of_user["sources"]["env.PROJECT"]),
        (&json!("one"), &json!("good"))
    );
    assert_eq!(resolved("base").await.unwrap().json().unwrap()["spec"]["env"]["BASE"], "1");
    let missing = resolved("missing").await.unwrap();
    assert_eq!(missing.problem().unwrap(), "404 unknown_blueprint");
    assert!(missing.body.contains("there is no blueprint at http://127.0.0.1"), "{missing:?}");
}

#[tokio::test]
async fn the_token_goes_to_the_provider_alone_and_only_that_of_the_labs_user() {
    let (service, git) = with_git(true).await;
    let ada = service.user("ada").unwrap();
    assert_eq!(spawn(&ada, "ada~repo=org/good").await.status, 303);
    let sent = git.asked("org/good/raw/lab.yaml").unwrap();
    assert!(sent.starts_with("Bearer "), "{sent}");
    assert!(!service.log().contains(sent.strip_prefix("Bearer ").unwrap()), "no token is in the log");
    git.0.lock().unwrap().clear();
    assert_eq!(spawn(&service.admin().unwrap(), "eve~repo=org/good").await.status, 303);
    assert_eq!(
        git.asked("org/good/raw/lab.yaml").as_deref(),
        Some(""),
        "an administrator's token is nobody's business"
    );
}

#[tokio::test]
async fn what_is_no_blueprint_of_this_user_is_refused_with_the_reason() {
    let (service, git) = with_git(false).await;
    let ada = service.user("ada").unwrap();
    for (repository, told) in [
        ("missing", "there is no blueprint at http://127.0.0.1"),
        ("html", "answers with a web page"),
        ("elsewhere", "answers with a redirection"),
        ("private", "does not let you read the blueprint (403)"),
        ("broken", "answers with the status 502"),
        ("huge", "more than 16 KiB"),
        ("binary", "something that is not text"),
        ("bomb", "cannot be used"),
        ("nfs", "`volumes.v` has to be an emptyDir"),
        ("claim", "`volumes.v` has to be an emptyDir"),
        ("image", "`initContainers.i` has an image"),
        ("platform", "`platform` is for the site's own blueprints"),
        ("climbs", "there is no blueprint `staff-only` that you may choose"),
    ] {
        let refused = spawn(&ada, &format!("ada~repo=org/{repository}")).await;
        assert_eq!(refused.problem().unwrap(), "422 invalid_option", "{repository}: {refused:?}");
        let detail = refused.json().unwrap()["detail"][0].clone();
        assert_eq!(detail["loc"], json!(["body", "options", "repo"]), "{repository}");
        assert!(detail["msg"].as_str().unwrap().contains(told), "{repository}: {detail}");
    }
    let refused = spawn(&ada, "ada~blueprint=missing").await;
    assert_eq!(refused.json().unwrap()["detail"][0]["loc"], json!(["body", "options", "blueprint"]));
    // The site has that blueprint, but not for her.
    let refused = spawn(&ada, "ada~blueprint=staff-only").await;
    assert!(refused.body.contains("there is no blueprint `staff-only` that you may choose"), "{refused:?}");
    assert_eq!(git.asked("people/staff-only/ada.yaml"), None);
    let labs = service.hub().unwrap().get(&format!("{PREFIX}/labs?status=all")).await.unwrap();
    assert_eq!(labs.json().unwrap(), Value::from(Vec::<Value>::new()));
}

/// A provider that never answers delays only the users who ask it, and only for as long as the site allows.
#[tokio::test]
async fn a_silent_provider_delays_no_other_spawn() {
    let (service, _git) = with_git(false).await;
    let waiting = (0..20).map(|number| {
        let user = service.user(&format!("user{number}")).unwrap();
        async move { spawn(&user, &format!("user{number}~repo=org/silent")).await }
    });
    let waiting = tokio::spawn(futures::future::join_all(waiting.collect::<Vec<_>>()));
    let ada = service.user("ada").unwrap();
    let others = async {
        for server in ["", "/servers/a", "/servers/b"] {
            let lab = format!("ada{server}");
            assert_eq!(ada.spawn(&lab).await.unwrap().status, 303);
            until(&ada, &lab, |lab| lab["status"] == "running").await;
        }
    };
    // The requests to the provider would take nearly seven minutes one after the other.
    tokio::time::timeout(Duration::from_mins(1), others).await.unwrap();
    for refused in waiting.await.unwrap() {
        assert_eq!(refused.problem().unwrap(), "422 invalid_option", "{refused:?}");
        assert!(refused.body.contains("does not answer in time"), "{refused:?}");
    }
}

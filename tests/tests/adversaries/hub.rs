//! A JupyterHub that answers as it likes.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use futures::future::join_all;
use http::HeaderMap;
use http::header::AUTHORIZATION;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::time::timeout;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;

use crate::{BINARY, PATIENCE};

#[derive(Clone, Default)]
struct Hub {
    /// The credentials that the Hub has received.
    seen: Arc<Mutex<Vec<String>>>,
    /// The number of requests to other paths.
    elsewhere: Arc<AtomicUsize>,
}

impl Hub {
    /// Starts the Hub, and returns the URL of its API.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let elsewhere = get(|State(hub): State<Self>| async move {
            hub.elsewhere.fetch_add(1, Ordering::SeqCst);
            axum::Json(user(&[]))
        });
        let router = Router::new()
            .route("/hub/api/user", get(owner))
            .route("/elsewhere", elsewhere)
            .with_state(self.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        format!("http://{address}/hub/api")
    }

    fn has_seen(&self, token: &str) -> bool {
        self.seen.lock().unwrap().iter().any(|seen| seen.contains(token))
    }
}

fn user(groups: &[String]) -> Value {
    json!({ "kind": "user", "name": "ada", "groups": groups, "scopes": ["servers!user=ada"] })
}

/// Answers as the token asks.
async fn owner(State(hub): State<Hub>, headers: HeaderMap) -> Response {
    let token = headers[AUTHORIZATION].to_str().unwrap().to_owned();
    hub.seen.lock().unwrap().push(token.clone());
    let groups = || (0..30_000).map(|n| n.to_string()).collect::<Vec<_>>();
    match token.trim_start_matches("token ") {
        "redirected" => Redirect::temporary("/elsewhere").into_response(),
        "unlikely-kind" => {
            axum::Json(json!({ "kind": "s3cret".repeat(50_000), "name": "ada" })).into_response()
        }
        many if many.starts_with("many-groups") => axum::Json(user(&groups())).into_response(),
        _ => axum::Json(user(&[])).into_response(),
    }
}

/// The service, with static tokens for administrators in addition to those of the Hub.
async fn service(hub: &Hub) -> Service {
    let api_url = hub.start().await;
    let mut service = Service::prepare(BINARY, |_| {}).unwrap();
    let change = |config: &mut Value| {
        config["auth"]["modes"] = json!(["static", "jupyterhub"]);
        config["auth"]["jupyterhub"] = json!({ "api_url": api_url });
        config["auth"]["identities"] = json!({ "default": { "uid": 2000, "gid": 2000 } });
    };
    service.reconfigure(change).unwrap();
    service.run().await.unwrap();
    service
}

async fn status(service: &Service, token: &str, path: &str) -> u16 {
    let client = service.stranger().with_token(token);
    client.send(client.request(http::Method::GET, &format!("{PREFIX}{path}"))).await.unwrap().status
}

#[tokio::test]
async fn a_user_with_endless_groups_delays_nobody() {
    let hub = Hub::default();
    let service = service(&hub).await;
    let admin = service.admin().unwrap();
    let tokens: Vec<String> = (0..8).map(|n| format!("many-groups-{n}")).collect();
    let many = join_all(tokens.iter().map(|token| status(&service, token, "/spawn-form/ada")));
    let others = async {
        for _ in 0..10 {
            let list = admin.send(admin.request(http::Method::GET, &format!("{PREFIX}/labs")));
            assert_eq!(timeout(PATIENCE, list).await.expect("others wait for it").unwrap().status, 200);
        }
    };
    let (refused, ()) = tokio::join!(many, others);
    assert_eq!(refused, [403; 8]);
}

#[tokio::test]
async fn what_the_hub_says_is_not_in_the_log() {
    let hub = Hub::default();
    let service = service(&hub).await;
    assert_eq!(status(&service, "unlikely-kind", "/labs/ada").await, 503);
    service.logged("gave no answer").await.unwrap();
    let log = service.log();
    assert!(!log.contains("s3cret"));
    assert!(log.lines().all(|line| line.len() < 4_000), "no line is longer than its own text");
}

#[tokio::test]
async fn the_hub_leads_the_service_to_no_other_address() {
    let hub = Hub::default();
    let service = service(&hub).await;
    assert_eq!(status(&service, "redirected", "/labs/ada").await, 503);
    assert_eq!(hub.elsewhere.load(Ordering::SeqCst), 0);
}

/// An expired token becomes valid when its line is extended. A token in a truncated file becomes valid when the file is
/// whole again.
#[tokio::test]
async fn the_hub_sees_no_static_token_that_is_not_valid_now() {
    let hub = Hub::default();
    let service = service(&hub).await;
    let admin = service.admin().unwrap();
    let labs = || admin.send(admin.request(http::Method::GET, &format!("{PREFIX}/labs")));
    assert_eq!(labs().await.unwrap().status, 200);
    let file = service.folder().join("tokens.yaml");
    let tokens = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, tokens.replace(r#""scopes""#, r#""expires":"2020-01-01T00:00:00Z","scopes""#))
        .unwrap();
    let refused = async || labs().await.unwrap().status == 401;
    wasmspawner_tests::waiting::until_some(async || refused().await.then_some(())).await;
    std::fs::write(&file, "").unwrap();
    assert_eq!(labs().await.unwrap().status, 401);
    assert!(hub.seen.lock().unwrap().is_empty());
    assert_eq!(status(&service, "of-ada", "/labs/ada").await, 404);
    assert!(hub.has_seen("of-ada"));
}

//! The dialect of Nublado 15, as its spawner class of JupyterHub uses it: `http.dialects: [nublado]`.

use axum::extract::Request;
use axum::response::IntoResponse as _;
use axum::{Json, Router};
use http::Method;
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt as _;
use kube::api::{Api, DeleteParams, ListParams};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use wasmspawner_tests::api::{Answer, Client};
use wasmspawner_tests::guests;
use wasmspawner_tests::provider::Provider;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::BINARY;

/// The path below which the dialect is served.
const NUBLADO: &str = "/nublado/spawner/v1";

/// A site with images, sizes and the options of Nublado's form.
fn site(config: &mut Value) {
    config["http"]["dialects"] = json!(["nublado"]);
    config["policies"] = json!([{
        "name": "site",
        "path": guests::component("policy-default"),
        "config": {
            "images": [
                { "name": "w_2025_07", "label": "Weekly 2025_07", "reference": "quay.io/site/lab:w_2025_07" },
                { "name": "r29_0_0", "label": "Release r29.0.0", "reference": "quay.io/site/lab:r29_0_0" },
            ],
            "default_image": "w_2025_07",
            "sizes": [{ "name": "small", "label": "Small", "cpu": 1, "memory": "3Gi" }],
            "options": [
                { "name": "enable_debug", "label": "Enable debug logs" },
                { "name": "reset_user_env", "label": "Reset user environment" },
            ],
        },
    }]);
}

async fn start() -> Service {
    Service::start_with(BINARY, site).await.unwrap()
}

async fn create_with(client: &Client, user: &str, body: &Value) -> Answer {
    let path = format!("{NUBLADO}/labs/{user}/create");
    client.send(client.request(Method::POST, &path).json(body)).await.unwrap()
}

/// Creates a lab with the options that a form of JupyterHub submits.
async fn create(client: &Client, user: &str) -> Answer {
    let options = json!({
        "image_list": ["use_image_from_dropdown"], "image_dropdown": ["w_2025_07"],
        "size": ["small"], "enable_debug": ["true"],
    });
    create_with(client, user, &with_env(&options)).await
}

fn with_env(options: &Value) -> Value {
    let env = json!({ "JUPYTERHUB_SERVICE_PREFIX": "/nb/user/ada/", "JUPYTERHUB_API_TOKEN": "s3cret" });
    json!({ "options": options, "env": env })
}

async fn get(client: &Client, path: &str) -> Answer {
    client.get(&format!("{NUBLADO}{path}")).await.unwrap()
}

async fn delete(client: &Client, user: &str) -> Answer {
    client.send(client.request(Method::DELETE, &format!("{NUBLADO}/labs/{user}"))).await.unwrap()
}

/// The bytes of the events of the last operation, until the stream ends.
async fn events(client: &Client, user: &str) -> String {
    let answer = get(client, &format!("/labs/{user}/events")).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"), "{answer:?}");
    answer.body
}

/// Status, type and place of an error that has Nublado's form, and nothing else.
fn problem(answer: &Answer) -> (u16, String, Value) {
    let body = answer.json().unwrap();
    assert_eq!(body.as_object().unwrap().len(), 1, "{body}");
    let detail = body["detail"][0].clone();
    assert!(detail["msg"].is_string(), "{body}");
    (answer.status, detail["type"].as_str().unwrap().to_owned(), detail["loc"].clone())
}

#[tokio::test]
async fn a_lab_is_created_followed_read_and_deleted() {
    let service = start().await;
    let (ada, hub) = (service.user("ada").unwrap(), service.hub().unwrap());
    let unknown = (404, "unknown_user".to_owned(), json!(["path", "username"]));
    for path in ["/labs/ada", "/labs/ada/events"] {
        assert_eq!(problem(&get(&ada, path).await), unknown, "{path}");
    }
    assert_eq!(problem(&delete(&hub, "ada").await), unknown);
    assert_eq!(get(&hub, "/labs").await.json().unwrap(), json!([]));

    let created = create(&ada, "ada").await;
    assert_eq!((created.status, created.body.as_str()), (201, "null"), "{created:?}");
    assert_eq!(created.header("location"), format!("http://{}{NUBLADO}/labs/ada", service.api()));
    assert_eq!(problem(&create(&ada, "ada").await).0, 409);

    let bytes = events(&ada, "ada").await;
    let frames: Vec<_> = bytes.split("\r\n\r\n").filter(|frame| !frame.starts_with(':')).collect();
    assert_eq!(frames.last(), Some(&""), "{bytes}");
    let mut progress = 0;
    for (at, frame) in frames[..frames.len() - 1].iter().enumerate() {
        let (event, data) = frame.split_once("\r\n").unwrap();
        let data: Value = serde_json::from_str(data.strip_prefix("data: ").unwrap()).unwrap();
        let keys: Vec<_> = data.as_object().unwrap().keys().map(String::as_str).collect();
        let is_last = at == frames.len() - 2;
        assert_eq!(event == "event: complete", is_last, "{bytes}");
        if is_last {
            assert_eq!(keys, ["message"], "{bytes}");
        } else {
            assert!(matches!(event, "event: info" | "event: error"), "{bytes}");
            let now = data["progress"].as_i64().unwrap_or(progress);
            assert!((progress..=100).contains(&now), "{bytes}");
            progress = now;
        }
    }
    assert!(progress > 0, "{bytes}");
    assert_eq!(events(&ada, "ada").await, bytes, "a second reader gets the same");

    let lab = get(&hub, "/labs/ada").await.json().unwrap();
    let (rest, url) = without_url(lab);
    assert_eq!(
        rest,
        json!({
            "user": { "username": "ada", "name": null, "uid": 1000, "gid": 1000, "groups": [{ "name": "users", "id": 1000 }] },
            "options": {
                "image": "quay.io/site/lab:w_2025_07", "size": "small", "enable_debug": true, "reset_user_env": false,
            },
            "status": "running",
            "resources": rest["resources"],
            "quota": null,
        })
    );
    assert_eq!(rest["resources"]["limits"], json!({ "cpu": 1.0, "memory": 3_i64 << 30 }));
    assert!(url.starts_with("http://") && url.ends_with("/nb/user/ada/"), "{url}");
    assert_eq!(get(&hub, "/labs").await.json().unwrap(), json!(["ada"]));
    assert_eq!(get(&ada, "/user-status").await.json().unwrap()["status"], "running");
    assert_eq!(problem(&create(&ada, "ada").await), (409, "lab_exists".to_owned(), Value::Null));

    let deleted = delete(&hub, "ada").await;
    assert_eq!((deleted.status, deleted.body.as_str()), (204, ""), "{deleted:?}");
    assert_eq!(problem(&get(&hub, "/labs/ada").await), unknown, "it is gone when the answer comes");
    assert_eq!(problem(&get(&ada, "/user-status").await).1, "unknown_user");
    assert_eq!(create(&ada, "ada").await.status, 201, "another one can be created at once");
}

fn without_url(mut lab: Value) -> (Value, String) {
    let url = lab.as_object_mut().unwrap().remove("internal_url").unwrap();
    (lab, url.as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_deletion_cancels_a_spawn_and_is_joined_by_others() {
    let service = Service::start_with(BINARY, |config| {
        site(config);
        config["embedded"]["simulated"]["ready"] = "10m".into();
    })
    .await
    .unwrap();
    let (ada, hub) = (service.user("ada").unwrap(), service.hub().unwrap());
    assert_eq!(create(&ada, "ada").await.status, 201);
    assert_eq!(get(&hub, "/labs/ada").await.json().unwrap()["status"], "pending");
    assert_eq!(get(&hub, "/labs").await.json().unwrap(), json!([]), "only labs that run are listed");
    assert_eq!(problem(&create(&ada, "ada").await).1, "operation_in_progress");
    let answers = futures::future::join_all((0..5).map(|_| delete(&hub, "ada"))).await;
    assert!(answers.iter().any(|answer| answer.status == 204), "{answers:?}");
    for answer in &answers {
        assert!(matches!(answer.status, 204 | 404), "{answer:?}");
    }
    assert_eq!(get(&hub, "/labs/ada").await.status, 404);
}

#[tokio::test]
async fn a_lab_whose_pod_was_deleted_by_others_does_not_run_and_is_replaced() {
    let service = start().await;
    let (ada, hub) = (service.user("ada").unwrap(), service.hub().unwrap());
    assert_eq!(create(&ada, "ada").await.status, 201);
    assert!(events(&ada, "ada").await.contains("event: complete"));
    let pod = Api::<Pod>::all(service.cluster().await.unwrap());
    let pod = pod.list(&ListParams::default()).await.unwrap().items.pop().unwrap();
    let pods: Api<Pod> = Api::namespaced(service.cluster().await.unwrap(), &pod.namespace().unwrap());
    pods.delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
    until_some(async || {
        let lab = get(&hub, "/labs/ada").await;
        (lab.status == 404 || lab.json().unwrap()["status"] == "failed").then_some(())
    })
    .await;
    assert_eq!(create(&ada, "ada").await.status, 201);
}

/// Columns: the options, and the status, type and place of the answer.
#[tokio::test]
async fn bodies_that_cannot_be_used_have_nublado_s_errors() {
    let service = start().await;
    let ada = service.user("ada").unwrap();
    let options = |name: &str| json!(["body", "options", name]);
    for (asked, status, kind, loc) in [
        (json!({ "image_tag": "w_1", "size": "small" }), 400, "unknown_image", options("image_tag")),
        (json!({ "image_list": "quay.io/site/lab:w_1" }), 400, "unknown_image", options("image_list")),
        (json!({ "image_class": "latest-daily" }), 400, "unknown_image", options("image_class")),
        (
            json!({ "image_dropdown": "quay.io/site/lab" }),
            422,
            "invalid_docker_reference",
            options("image_dropdown"),
        ),
        (json!({ "image_tag": "r29_0_0", "size": "gargantuan" }), 422, "invalid_lab_size", options("size")),
        (json!({ "image_tag": "r29_0_0", "colour": "red" }), 422, "invalid_option", options("colour")),
        (
            json!({ "image_tag": "r29_0_0", "image_class": "recommended" }),
            422,
            "invalid_body",
            options("image_tag"),
        ),
        (json!({ "image_tag": ["a", "b"] }), 422, "wrong_type", options("image_tag")),
    ] {
        let answer = create_with(&ada, "ada", &with_env(&asked)).await;
        assert_eq!(problem(&answer), (status, kind.to_owned(), loc), "{asked}");
    }
    for (body, loc) in [
        (json!({ "options": { "image_tag": "r29_0_0" } }), json!(["body", "env"])),
        (
            json!({ "options": { "image_tag": "r29_0_0" }, "env": {} }),
            json!(["body", "env", "JUPYTERHUB_SERVICE_PREFIX"]),
        ),
    ] {
        assert_eq!(problem(&create_with(&ada, "ada", &body).await), (422, "missing".to_owned(), loc));
    }
    assert_eq!(get(&ada, "/user-status").await.status, 404, "none of them has started a lab");
    for image in [json!({ "image_class": "r29_0_0" }), json!({ "image": ["r29_0_0"] })] {
        assert_eq!(create_with(&ada, "ada", &with_env(&image)).await.status, 201, "{image}");
        assert_eq!(delete(&ada, "ada").await.status, 204);
    }
}

#[tokio::test]
async fn each_route_is_for_its_callers_alone() {
    let service = start().await;
    let (ada, eve) = (service.user("ada").unwrap(), service.user("eve").unwrap());
    let (hub, admin, stranger) = (service.hub().unwrap(), service.admin().unwrap(), service.stranger());
    let denied = (403, "permission_denied".to_owned(), Value::Null);
    for (path, users, owners) in [
        ("/labs", false, false),
        ("/images", false, false),
        ("/prepulls", false, false),
        ("/labs/ada", false, true),
        ("/labs/ada/events", false, true),
        ("/lab-form/ada", false, true),
        ("/user-status", true, true),
    ] {
        assert_eq!(get(&stranger, path).await.status, 401, "{path}");
        for (client, allowed) in [(&eve, users), (&ada, owners), (&hub, true), (&admin, true)] {
            let answer = get(client, path).await;
            assert_eq!(answer.status == 403, !allowed, "{path}: {answer:?}");
            if !allowed {
                assert_eq!(problem(&answer), denied, "{path}");
            }
        }
    }
    assert_eq!(problem(&create(&eve, "ada").await), denied);
    assert_eq!(problem(&create(&hub, "ada").await), denied, "the Hub's token starts no lab");
    assert_eq!(problem(&create(&stranger, "ada").await).0, 401);
    assert_eq!(problem(&delete(&eve, "ada").await), denied);
    let unknown = stranger.with_token("nonsense");
    assert_eq!(problem(&get(&unknown, "/labs").await), (401, "invalid_token".to_owned(), Value::Null));
}

#[tokio::test]
async fn form_and_prepulls_have_nublado_s_form() {
    let service = Service::start_with(BINARY, |config| {
        site(config);
        config["images"] =
            json!({ "nodes": {}, "prepull": { "images": [{ "reference": "quay.io/site/lab:r29_0_0" }] } });
    })
    .await
    .unwrap();
    let (ada, hub) = (service.user("ada").unwrap(), service.hub().unwrap());
    let form = get(&ada, "/lab-form/ada").await;
    assert_eq!((form.status, form.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(form.body.contains(r#"name="image""#) && form.body.contains(r#"name="size""#), "{}", form.body);

    let prepulls = until_some(async || {
        let answer = get(&hub, "/prepulls").await.json().unwrap();
        (!answer["images"]["prepulled"].as_array().unwrap().is_empty()).then_some(answer)
    })
    .await;
    let image = &prepulls["images"]["prepulled"][0];
    assert_eq!(
        (&image["reference"], &image["tag"], &image["missing"]),
        (&json!("quay.io/site/lab:r29_0_0"), &json!("r29_0_0"), &json!([])),
        "{prepulls:#}"
    );
    assert_eq!(prepulls["images"]["pending"], json!([]));
    let node = &prepulls["nodes"][0];
    assert_eq!((&node["eligible"], &node["comment"]), (&json!(true), &Value::Null), "{prepulls:#}");
}

/// A registry with two tags of one image, and one of another. Returns its address.
async fn registry() -> String {
    let answer = async |request: Request| {
        let path = request.uri().path().to_owned();
        if path.ends_with("/tags/list") {
            let tags = ["w_2025_07", "r29_0_0", "recommended"];
            return Json(json!({ "name": "site/lab", "tags": tags })).into_response();
        }
        let digest = if path.ends_with("/w_2025_07") { "a" } else { "b" };
        ([("docker-content-digest", format!("sha256:{}", digest.repeat(64)))], "").into_response()
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    tokio::spawn(async move { axum::serve(listener, Router::new().fallback(answer)).await });
    address
}

#[tokio::test]
async fn images_are_listed_and_named_by_reference_digest_or_tag() {
    let registry = registry().await;
    let lab = format!("{registry}/site/lab");
    let service = Service::start_with(BINARY, |config| {
        config["http"]["dialects"] = json!(["nublado"]);
        config["registries"] = json!({ "plain_http": [registry] });
        config["images"] = json!({ "repositories": [{ "name": lab }] });
    })
    .await
    .unwrap();
    let (ada, hub) = (service.user("ada").unwrap(), service.hub().unwrap());
    let images = until_some(async || {
        let images = get(&hub, "/images").await.json().unwrap();
        let all = images["all"].as_array().unwrap();
        (all.len() == 3 && all.iter().all(|image| image["digest"].is_string())).then_some(images)
    })
    .await;
    assert!(images.get("latest_daily").is_none(), "what there is not is left out: {images:#}");
    let all = images["all"].as_array().unwrap();
    let release = all.iter().find(|image| image["tag"] == "r29_0_0").unwrap();
    let digest = format!("sha256:{}", "b".repeat(64));
    assert_eq!(
        (&release["reference"], &release["digest"], &release["aliases"], &release["prepulled"]),
        (&json!(format!("{lab}:r29_0_0")), &json!(digest), &json!(["recommended"]), &json!(false)),
        "{images:#}"
    );
    let missing = create_with(&ada, "ada", &with_env(&json!({ "size": "small" }))).await;
    assert_eq!(problem(&missing), (422, "missing".to_owned(), json!(["body", "options"])));
    let unknown = create_with(&ada, "ada", &with_env(&json!({ "image_list": [format!("{lab}:w_1")] }))).await;
    assert_eq!(
        problem(&unknown),
        (400, "unknown_image".to_owned(), json!(["body", "options", "image_list"]))
    );
    for options in [
        json!({ "image_list": [format!("{lab}:r29_0_0")] }),
        json!({ "image_list": format!("{lab}:r29_0_0@{digest}") }),
        json!({ "image_dropdown": format!("{lab}:r29_0_0"), "image_list": "use_image_from_dropdown" }),
        json!({ "image_tag": "r29_0_0" }),
    ] {
        let created = create_with(&ada, "ada", &with_env(&options)).await;
        assert_eq!(created.status, 201, "{options}: {created:?}");
        assert_eq!(delete(&hub, "ada").await.status, 204);
    }
}

/// The spawner class sends no `X-Requested-With`; the ingress turns its bearer token into headers.
#[tokio::test]
async fn behind_gafaelfawr_no_page_of_another_site_can_create_or_delete_a_lab() {
    let of = |name: &str, quota: Value| json!({ "username": name, "name": "Ada (?)", "uid": 7, "gid": 7, "groups": [{ "name": "g", "id": 8 }], "quota": quota });
    let token = |name: &str| json!({ "username": name, "scopes": ["exec:notebook"] });
    let quota = |spawn: bool| json!({ "notebook": { "cpu": 9.0, "memory": 27.0, "spawn": spawn } });
    let gafaelfawr = Provider::start(&[
        ("/auth/api/v1/user-info", "gt-ada", of("ada", quota(true))),
        ("/auth/api/v1/token-info", "gt-ada", token("ada")),
        ("/auth/api/v1/user-info", "gt-bob", of("bob", quota(false))),
        ("/auth/api/v1/token-info", "gt-bob", token("bob")),
    ])
    .await
    .unwrap();
    let service = Service::start_with(BINARY, |config| {
        site(config);
        config["auth"] = json!({
            "modes": ["headers"],
            "headers": { "url": gafaelfawr.url(), "trusted_peers": ["127.0.0.0/8"], "implied_scopes": [] },
        });
    })
    .await
    .unwrap();
    let client = service.stranger();
    let send = async |method: Method, path: &str, user: &str, body: Option<(&str, String)>| {
        let request = client.request(method, &format!("{NUBLADO}{path}"));
        let request =
            request.header("X-Auth-Request-User", user).header("X-Auth-Request-Token", format!("gt-{user}"));
        let request = request.header("X-Forwarded-Proto", "https").header("Host", "data.example.org");
        let request = match body {
            Some((kind, body)) => request.header("Content-Type", kind).body(body),
            None => request,
        };
        client.send(request).await.unwrap()
    };
    let body = with_env(&json!({ "image_tag": "w_2025_07", "size": "small" })).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded", "text/plain; application/json"] {
        let answer = send(Method::POST, "/labs/ada/create", "ada", Some((kind, body.clone()))).await;
        assert_eq!(problem(&answer).1, "cross_site_request", "a form of another site can send {kind}");
    }
    let json = |body: &String| Some(("application/json", body.clone()));
    let created = send(Method::POST, "/labs/ada/create", "ada", json(&body)).await;
    assert_eq!(
        (created.status, created.header("location")),
        (201, "https://data.example.org/nublado/spawner/v1/labs/ada")
    );
    let lab = send(Method::GET, "/user-status", "ada", None).await.json().unwrap();
    assert_eq!(
        (&lab["user"]["name"], &lab["quota"]),
        (&json!("Ada (?)"), &json!({ "cpu": 9.0, "memory": 27_i64 << 30 }))
    );
    assert_eq!(send(Method::DELETE, "/labs/ada", "ada", None).await.status, 204);

    let form = send(Method::GET, "/lab-form/bob", "bob", None).await;
    assert_eq!(form.status, 200);
    assert!(form.body.contains("does not allow you to start a lab"), "{}", form.body);
    let refused = send(Method::POST, "/labs/bob/create", "bob", json(&body)).await;
    assert_eq!(problem(&refused).0, 403, "{refused:?}");
}

#[tokio::test]
async fn the_dialect_is_served_only_where_it_is_configured_and_described_there() {
    let without = Service::start(BINARY).await.unwrap();
    assert_eq!(get(&without.hub().unwrap(), "/labs").await.problem().unwrap(), "404 unknown_route");
    let service = Service::start_with(BINARY, |config| {
        site(config);
        config["http"]["nublado_prefix"] = "/old/nublado".into();
    })
    .await
    .unwrap();
    let hub = service.hub().unwrap();
    assert_eq!(hub.get("/old/nublado/spawner/v1/labs").await.unwrap().status, 200);
    let document = hub.get("/spawner/v1/openapi.json").await.unwrap().json().unwrap();
    let path = &document["paths"]["/spawner/v1/labs/{username}/create"];
    assert_eq!(path["servers"][0]["url"], "/old/nublado");
    assert!(path["post"]["responses"]["201"].is_object(), "{path:#}");
    assert_eq!(hub.lab("ada").await.unwrap().status, 404, "the service's own API stays");
}

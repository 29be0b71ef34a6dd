//! Invalid requests: the answer names the place of the error, and nothing changes.

use http::Method;
use serde_json::json;
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::service::Service;

use crate::BINARY;

async fn send(client: &Client, method: Method, path: &str) -> Answer {
    client.send(client.request(method, path)).await.unwrap()
}

#[tokio::test]
async fn invalid_names_are_refused_on_every_route() {
    let service = Service::start(BINARY).await.unwrap();
    let admin = service.admin().unwrap();
    let long = "x".repeat(300);
    for (name, expected) in [
        ("", "422 invalid_name"),
        (long.as_str(), "422 invalid_name"),
        ("..%2F..%2Fetc", "422 invalid_name"),
        ("a%00b", "422 invalid_name"),
        ("a%0Ab", "422 invalid_name"),
        ("%20ada", "422 invalid_name"),
        ("%FF%FE", "400 not_utf8"),
    ] {
        for (method, path) in [
            (Method::GET, format!("{PREFIX}/labs/{name}/events")),
            (Method::GET, format!("{PREFIX}/labs/{name}/history")),
            (Method::POST, format!("{PREFIX}/labs/{name}/spawn")),
            (Method::POST, format!("{PREFIX}/labs/ada/servers/{name}/spawn")),
            (Method::DELETE, format!("{PREFIX}/labs/{name}/servers/x")),
            (Method::GET, format!("{PREFIX}/spawn-form/{name}/servers/x")),
        ] {
            let answer = send(&admin, method.clone(), &path).await;
            assert_eq!(answer.problem().unwrap(), expected, "{method} {path}");
        }
    }
    assert_eq!(admin.get(&format!("{PREFIX}/labs?status=all")).await.unwrap().body, "[]");
}

#[tokio::test]
async fn unusual_but_valid_names_get_a_lab() {
    let service = Service::start(BINARY).await.unwrap();
    let admin = service.admin().unwrap();
    for (path, name) in [
        ("--", "--"),
        ("-a-", "-a-"),
        ("%E6%97%A5%E6%9C%AC%E8%AA%9E", "日本語"),
        ("a%20b", "a b"),
        ("%7Busername%7D", "{username}"),
        ("ADA", "ADA"),
    ] {
        let answer = admin.spawn(path).await.unwrap();
        assert_eq!(answer.status, 303, "{path}: {answer:?}");
        admin.events(path).await.unwrap().next_of("complete").await.unwrap();
        assert_eq!(admin.lab(path).await.unwrap().json().unwrap()["username"], name);
    }
}

#[tokio::test]
async fn the_answer_to_an_invalid_body_says_where() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    let spawn = || ada.request(Method::POST, &format!("{PREFIX}/labs/ada/spawn"));
    let json = |body: &str| spawn().header("content-type", "application/json").body(body.to_owned());
    let large = format!(r#"{{"env": {{"A": "{}"}}}}"#, "x".repeat(1 << 20));
    for (request, expected) in [
        (json(""), "400 malformed_json"),
        (json("{"), "400 malformed_json"),
        (json("{} {}"), "400 malformed_json"),
        (json(&"[".repeat(10_000)), "400 malformed_json"),
        (json("[]"), "422 wrong_type"),
        (json("null"), "422 wrong_type"),
        (json(r#"{"options": []}"#), "422 wrong_type"),
        (json(r#"{"options": null}"#), "422 wrong_type"),
        (json(r#"{"env": null}"#), "422 wrong_type"),
        (json(r#"{"env": "A=B"}"#), "422 wrong_type"),
        (json(r#"{"image": "lab"}"#), "422 unknown_field"),
        (json(r#"{"options": {"size": ["a", 1]}}"#), "422 invalid_option"),
        (json(r#"{"options": {"size": {"of": "lab"}}}"#), "422 invalid_option"),
        (json(r#"{"env": {"1A": "x"}}"#), "422 invalid_env"),
        (json(r#"{"env": {"A B": "x"}}"#), "422 invalid_env"),
        (json(r#"{"env": {"A=B": "x"}}"#), "422 invalid_env"),
        (json(r#"{"env": {"": "x"}}"#), "422 invalid_env"),
        (json(r#"{"env": {"Ä": "x"}}"#), "422 invalid_env"),
        (json(r#"{"env": {"A": 1}}"#), "422 invalid_env"),
        (json(r#"{"env": {"A": "\u0000"}}"#), "422 invalid_env"),
        (json(&large), "413 body_too_large"),
        (spawn().body("{}"), "415 unsupported_media_type"),
        (spawn().header("content-type", "text/plain").body("{}"), "415 unsupported_media_type"),
    ] {
        let answer = ada.send(request).await.unwrap();
        assert_eq!(answer.problem().unwrap(), expected);
    }
    let several =
        ada.spawn_with("ada", &json!({ "env": { "1": "", "2": "" }, "x": 0 })).await.unwrap().json().unwrap();
    let places: Vec<_> =
        several["detail"].as_array().unwrap().iter().map(|problem| &problem["loc"]).collect();
    assert_eq!(places, [&json!(["body", "env", "1"]), &json!(["body", "env", "2"]), &json!(["body", "x"])]);
    assert_eq!(ada.lab("ada").await.unwrap().status, 404, "nothing was started");
}

#[tokio::test]
async fn wrong_routes_methods_and_headers_get_errors_of_the_usual_shape() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    for (method, path, expected) in [
        (Method::GET, "/", "404 unknown_route"),
        (Method::GET, "/spawner/v1", "404 unknown_route"),
        (Method::GET, "/spawner/v2/labs", "404 unknown_route"),
        (Method::GET, "/spawner/v1/labs/ada/nothing", "404 unknown_route"),
        (Method::GET, "/spawner/v1/labs/", "404 unknown_route"),
        (Method::PUT, "/spawner/v1/labs/ada", "405 method_not_allowed"),
        (Method::GET, "/spawner/v1/labs/ada/spawn", "405 method_not_allowed"),
        (Method::DELETE, "/spawner/v1/labs", "405 method_not_allowed"),
    ] {
        let answer = send(&ada, method.clone(), path).await;
        assert_eq!(answer.problem().unwrap(), expected, "{method} {path}");
    }
    assert_eq!(send(&ada, Method::PUT, "/spawner/v1/labs/ada").await.header("allow"), "GET,HEAD,DELETE");

    let long = format!("{PREFIX}/labs?x={}", "x".repeat(9000));
    assert_eq!(send(&ada, Method::GET, &long).await.problem().unwrap(), "414 uri_too_long");
    let labs = || ada.request(Method::GET, &format!("{PREFIX}/labs/ada"));
    let large = ada.send(labs().header("x-large", "x".repeat(40_000))).await.unwrap();
    assert_eq!(large.problem().unwrap(), "431 headers_too_large");
    let many = (0..200).fold(labs(), |request, n| request.header(format!("x-{n}"), "x"));
    assert_eq!(ada.send(many).await.unwrap().problem().unwrap(), "431 headers_too_large");
    let stranger = service.stranger();
    for header in ["Basic YTpi", "Bearer", "Bearer a b", "Bearer \u{e9}"] {
        let request =
            stranger.request(Method::GET, &format!("{PREFIX}/labs/ada")).header("authorization", header);
        assert_eq!(
            stranger.send(request).await.unwrap().problem().unwrap(),
            "401 not_authenticated",
            "{header}"
        );
    }
}

#[tokio::test]
async fn the_request_id_of_a_client_is_kept_if_it_is_a_plain_word() {
    let service = Service::start(BINARY).await.unwrap();
    let stranger = service.stranger();
    let with = |id: &str| {
        stranger.request(Method::GET, &format!("{PREFIX}/openapi.json")).header("x-request-id", id)
    };
    let kept = stranger.send(with("from-the-proxy.1")).await.unwrap();
    assert_eq!(kept.header("x-request-id"), "from-the-proxy.1");
    let replaced = stranger.send(with("a b\"c")).await.unwrap();
    assert!(!replaced.header("x-request-id").contains(' ') && !replaced.header("x-request-id").is_empty());
}

#[tokio::test]
async fn malformed_requests_are_answered() {
    let service = Service::start(BINARY).await.unwrap();
    for (head, expected) in [
        ("GET /spawner/v1/labs/../events HTTP/1.1\r\nHost: x", "HTTP/1.1 401 Unauthorized"),
        ("GET /spawner/v1/labs/%zz HTTP/1.1\r\nHost: x", "HTTP/1.1 401 Unauthorized"),
        ("GET //spawner//v1 HTTP/1.1\r\nHost: x", "HTTP/1.1 404 Not Found"),
        ("BREW /spawner/v1/labs HTTP/1.1\r\nHost: x", "HTTP/1.1 405 Method Not Allowed"),
        ("GET /spawner/v1/labs", "HTTP/1.1 400 Bad Request"),
        ("nonsense", "HTTP/1.1 400 Bad Request"),
        ("GET /spawner/v1/labs HTTP/1.1\r\nContent-Length: x", "HTTP/1.1 400 Bad Request"),
    ] {
        let answer = service.stranger().raw(head).await.unwrap();
        assert_eq!(answer.lines().next(), Some(expected), "{head}");
    }
    let admin = service.admin().unwrap();
    let step = admin.raw("GET /spawner/v1/labs/../events HTTP/1.1\r\nHost: x").await.unwrap();
    assert!(step.starts_with("HTTP/1.1 422") && step.contains("path step"), "{step}");
}

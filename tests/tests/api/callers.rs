//! For whom each route is: the page of the API says it, and ingresses that authenticate callers are made from it.

use http::Method;
use serde_json::json;
use wasmspawner_tests::api::{Answer, Client, PREFIX};
use wasmspawner_tests::service::Service;

use crate::BINARY;

/// The rows of the page's table of routes: method, path, and the letters of the scopes.
fn routes() -> Vec<(Method, String, String)> {
    let page = include_str!("../../../host/api/src/README.md");
    let rows = page.lines().filter(|line| line.starts_with("| `"));
    let rows = rows.filter_map(|row| row.trim_matches(['|', ' ']).split_once(" | "));
    rows.flat_map(|(named, rest)| {
        let callers = rest.rsplit_once(" | ").map(|(_, callers)| callers).unwrap_or_default();
        let named = named.split('`').skip(1).step_by(2).filter_map(|route| route.split_once(' '));
        named.map(|(method, path)| {
            let path = path.split('?').next().unwrap_or_default().replace("{user}", "ada");
            let path = path.replace("{job_id}", "01a1fd9e-deb5-7652-a3d6-2d71fc436701");
            (method.parse().unwrap(), path.replace(['{', '}'], ""), callers.to_owned())
        })
    })
    .collect()
}

async fn ask(client: &Client, method: &Method, path: &str) -> Answer {
    let request = client.request(method.clone(), &format!("{PREFIX}{path}"));
    let request = if *method == Method::POST { request.json(&json!({})) } else { request };
    client.send(request).await.unwrap()
}

#[tokio::test]
async fn each_route_refuses_exactly_those_whom_the_page_does_not_name() {
    let service = Service::start(BINARY).await.unwrap();
    let callers =
        [("U", service.user("ada").unwrap()), ("H", service.hub().unwrap()), ("A", service.admin().unwrap())];
    let (stranger, eve) = (service.stranger(), service.user("eve").unwrap());
    let mut asked = 0;
    for (method, path, named) in routes() {
        let without = ask(&stranger, &method, &path).await.status;
        assert_eq!(without == 401, named != "none needed", "{method} {path} without a credential: {without}");
        if named.contains("token") || named == "none needed" {
            continue;
        }
        for (letter, client) in &callers {
            let answer = ask(client, &method, &path).await;
            let refused = answer.status == 403;
            assert_eq!(
                refused,
                !named.split(", ").any(|one| one == *letter),
                "{letter} {method} {path}: {answer:?}"
            );
        }
        if path.contains("/ada") {
            let other = ask(&eve, &method, &path).await;
            assert_eq!(other.status, 403, "the lab is another user's: {method} {path}: {other:?}");
        }
        asked += 1;
    }
    assert!(asked > 35, "only {asked} routes were found on the page");
}

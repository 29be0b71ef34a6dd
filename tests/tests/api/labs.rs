//! `GET /labs`

use serde_json::json;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;

use crate::BINARY;

#[tokio::test]
async fn running_labs_are_listed_by_default_and_others_on_request() {
    let service = Service::start(BINARY).await.unwrap();
    for name in ["bob", "ada"] {
        service.user(name).unwrap().spawn_to_end(name).await.unwrap();
    }
    let stuck = "fault.not-ready";
    assert_eq!(service.user(stuck).unwrap().spawn(stuck).await.unwrap().status, 303);

    let hub = service.hub().unwrap();
    for (query, expected) in [
        ("", json!(["ada", "bob"])),
        ("?status=starting", json!([stuck])),
        ("?status=running&status=starting", json!(["ada", "bob", stuck])),
        ("?status=all", json!(["ada", "bob", stuck])),
        ("?status=failed", json!([])),
    ] {
        let answer = hub.get(&format!("{PREFIX}/labs{query}")).await.unwrap();
        assert_eq!((answer.status, answer.json().unwrap()), (200, expected), "{query}");
    }
    for query in ["?status=asleep", "?status=", "?status=running&status=Failed"] {
        let odd = hub.get(&format!("{PREFIX}/labs{query}")).await.unwrap();
        assert_eq!(odd.problem().unwrap(), "422 unknown_status", "{query}");
    }
}

#[tokio::test]
async fn the_list_is_for_the_hub_and_administrators() {
    let service = Service::start(BINARY).await.unwrap();
    let path = format!("{PREFIX}/labs");
    for (client, expected) in [(service.hub().unwrap(), 200), (service.admin().unwrap(), 200)] {
        assert_eq!(client.get(&path).await.unwrap().status, expected);
    }
    let user = service.user("ada").unwrap().get(&path).await.unwrap();
    assert_eq!(user.problem().unwrap(), "403 permission_denied");
    let stranger = service.stranger().get(&path).await.unwrap();
    assert_eq!(stranger.problem().unwrap(), "401 not_authenticated");
    assert_eq!(stranger.header("www-authenticate"), "Bearer");
    let liar = service.stranger().with_token("guessed").get(&path).await.unwrap();
    assert_eq!(liar.problem().unwrap(), "401 invalid_token");
}

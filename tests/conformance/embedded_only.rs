//! Cases for the embedded server only: restarts, a short watch window, its own listener.

use crate::cluster::{config_map, object, refused, soon};
use futures::StreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{Api, DeleteParams, ListParams, PostParams, WatchEvent, WatchParams};
use kube::{Client, Config};
use serde_json::json;
use std::path::Path;
use std::pin::pin;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use wasmspawner_embedded::apiserver::{Access, ApiServer, Options};

fn maps(server: &ApiServer) -> Api<ConfigMap> {
    Api::namespaced(server.client(), "default")
}

#[tokio::test]
async fn a_restart_keeps_objects_and_continues_resource_versions() {
    let directory = tempfile::tempdir().unwrap();
    let state = directory.path().join("state");
    let server = ApiServer::open(Options::persistent(&state)).unwrap();
    let kept = maps(&server).create(&PostParams::default(), &config_map("kept", "1")).await.unwrap();
    maps(&server).create(&PostParams::default(), &config_map("gone", "1")).await.unwrap();
    maps(&server).delete("gone", &DeleteParams::default()).await.unwrap();
    let last = maps(&server).list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    drop(server);

    let server = reopen(&state).await;
    let maps = maps(&server);
    let read = maps.get("kept").await.unwrap();
    assert_eq!(read, kept);
    assert!(maps.get_opt("gone").await.unwrap().is_none());
    let now = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    assert!(now.parse::<u64>().unwrap() > last.parse().unwrap(), "{now} > {last}");
    // The events in between are lost, so the client has to list again.
    assert_eq!(refused(maps.watch(&WatchParams::default(), &last).await.map(|_| ())).code, 410);
}

/// Opens the state again once its last user is gone: clients end in their own time.
async fn reopen(state: &Path) -> ApiServer {
    let mut server = None;
    crate::cluster::eventually("the state is free", async || {
        server = ApiServer::open(Options::persistent(state)).ok();
        server.is_some()
    })
    .await;
    server.unwrap()
}

#[tokio::test]
async fn a_second_server_with_the_same_state_directory_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let _server = ApiServer::open(Options::persistent(directory.path())).unwrap();
    let error = ApiServer::open(Options::persistent(directory.path())).err().unwrap();
    assert!(error.to_string().contains("another process"), "{error}");
}

#[tokio::test]
async fn a_watch_from_before_the_window_is_gone() {
    let server = ApiServer::open(Options { watch_window: 4, ..Options::default() }).unwrap();
    let maps = maps(&server);
    let start = maps.list(&ListParams::default()).await.unwrap().metadata.resource_version.unwrap();
    let mut slow = pin!(maps.watch(&WatchParams::default(), &start).await.unwrap());
    for i in 0..3 {
        maps.create(&PostParams::default(), &config_map(&format!("m{i}"), "1")).await.unwrap();
    }
    let page = maps.list(&ListParams::default().limit(1)).await.unwrap();
    for i in 3..10 {
        maps.create(&PostParams::default(), &config_map(&format!("m{i}"), "1")).await.unwrap();
    }
    assert_eq!(refused(maps.watch(&WatchParams::default(), &start).await.map(|_| ())).code, 410);
    let next = ListParams::default().limit(1).continue_token(&page.metadata.continue_.unwrap());
    assert_eq!(refused(maps.list(&next).await).code, 410);
    // A watch that fell behind gets an error, and ends.
    let mut last = None;
    while let Some(event) = soon("the watch ends", slow.next()).await {
        last = Some(event.unwrap());
    }
    assert!(matches!(&last, Some(WatchEvent::Error(status)) if status.code == 410), "{last:?}");
}

#[tokio::test]
async fn a_listener_refuses_requests_without_the_token() {
    let server = ApiServer::open(Options::default()).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let access = Access::token("s3cret");
    let serving = tokio::spawn(server.serve(listener, None, access, shutdown.clone()));
    let client = |token: Option<&str>| {
        let mut config = Config::new(format!("http://{address}").parse().unwrap());
        config.auth_info.token = token.map(|token| token.to_owned().into());
        Client::try_from(config).unwrap()
    };
    for token in [None, Some("wrong")] {
        let namespaces: Api<Namespace> = Api::all(client(token));
        let status = refused(namespaces.get("default").await);
        assert_eq!((status.code, status.reason.as_str()), (401, "Unauthorized"), "{token:?}");
    }
    let namespaces: Api<Namespace> = Api::all(client(Some("s3cret")));
    namespaces.create(&PostParams::default(), &object(json!({"metadata": {"name": "n"}}))).await.unwrap();
    // A shutdown ends watches, and then the server.
    let mut events =
        pin!(namespaces.watch(&WatchParams::default().fields("metadata.name=n"), "0").await.unwrap());
    assert!(matches!(soon("an event", events.next()).await, Some(Ok(WatchEvent::Added(_)))));
    shutdown.cancel();
    assert!(soon("the watch ends", events.next()).await.is_none());
    soon("the server ends", serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_listener_stays_on_loopback() {
    let server = ApiServer::open(Options::default()).unwrap();
    let listener = TcpListener::bind("0.0.0.0:0").await.unwrap();
    let error =
        server.serve(listener, None, Access::token("s3cret"), CancellationToken::new()).await.unwrap_err();
    assert!(error.to_string().contains("loopback"), "{error}");
}

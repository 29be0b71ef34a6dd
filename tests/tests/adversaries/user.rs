//! A user of JupyterHub, with a token of their own.

use std::net::Ipv4Addr;

use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, PostParams};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use crate::{BINARY, PATIENCE, connect, resident};

/// Open connections of one user with a good token leave room for others.
#[tokio::test]
async fn one_user_does_not_hold_all_connections() {
    let service =
        Service::start_with(BINARY, |config| config["http"]["max_connections"] = json!(200)).await.unwrap();
    let ada = service.user("ada").unwrap();
    let request = format!(
        "GET {PREFIX}/labs/ada HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {}\r\n\r\n",
        ada.token().unwrap()
    );
    let mut open = Vec::new();
    for number in 0..300_u16 {
        let from = Ipv4Addr::new(127, 0, 3, u8::try_from(number % 10).unwrap());
        let Some(mut connection) = connect(from, service.api()).await else { continue };
        let _ = connection.write_all(request.as_bytes()).await;
        let mut some = [0; 4096];
        let _ = timeout(PATIENCE, connection.read(&mut some)).await.unwrap();
        open.push(connection);
    }
    let grace = service.user("grace").unwrap();
    let answer = timeout(PATIENCE, grace.lab("grace")).await.unwrap().unwrap();
    assert_eq!(answer.status, 404, "{answer:?}");
}

/// The service keeps as many failed labs of a user as the user may have labs, and does not keep the requests for them.
#[tokio::test]
async fn labs_that_fail_fill_no_memory() {
    let service = Service::start_with(BINARY, |config| {
        config["limits"]["per_user"] =
            json!({ "labs": 3, "spawns_per_minute": 1000, "requests_per_second": 1000 });
        config["kubernetes"] = json!({ "namespaces": "retain" });
        config["names"] = json!({ "namespace": "labs-{username}" });
    })
    .await
    .unwrap();
    // All labs fail before any object of them exists, because the namespace is not the service's.
    let namespaces: Api<Namespace> = Api::all(service.cluster().await.unwrap());
    let foreign = serde_json::from_value(json!({ "metadata": { "name": "labs-ada" } })).unwrap();
    namespaces.create(&PostParams::default(), &foreign).await.unwrap();

    let (ada, admin) = (service.user("ada").unwrap(), service.admin().unwrap());
    let env: serde_json::Map<_, _> =
        (0..500).map(|number| (format!("T{number:03}{}", "A".repeat(240)), json!("x".repeat(200)))).collect();
    let body = json!({ "env": env });
    let fail = async |number: usize| {
        let lab = format!("ada/servers/x{number}");
        let answer = ada.spawn_with(&lab, &body).await.unwrap();
        assert_eq!(answer.status, 303, "{answer:?}");
        let events = ada.events(&lab).await.unwrap().to_end().await.unwrap();
        assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    };
    for number in 0..40 {
        fail(number).await;
    }
    let before = resident(&service);
    for number in 40..140 {
        fail(number).await;
    }
    let labs = until_some(async || {
        let list = admin.get(&format!("{PREFIX}/lab-status")).await.unwrap();
        let labs = list.json().unwrap()["labs"].as_array().unwrap().clone();
        (labs.len() <= 3).then_some(labs)
    })
    .await;
    assert!(labs.len() == 3 && labs.iter().all(|lab| lab["status"] == "failed"), "{labs:?}");
    let newest = ada.lab("ada/servers/x139").await.unwrap().json().unwrap();
    assert_eq!((&newest["env"], &newest["options"]), (&json!({}), &json!({})), "{newest:#}");
    let grown = resident(&service) - before;
    // The one-machine cluster is a part of the process, and keeps recent records: 31 MiB for a hundred. All requests
    // and decisions would take 120 MiB.
    assert!(grown < 60, "{grown} MiB more, for {} failed labs", labs.len());
}

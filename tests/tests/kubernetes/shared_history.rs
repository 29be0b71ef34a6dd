//! Two processes of one installation, whose history is in NATS.

use serde_json::json;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::kubernetes::SKIPPED;
use wasmspawner_tests::nats::{self, NatsServer};
use wasmspawner_tests::service::own_address;
use wasmspawner_tests::waiting::{until_running, until_some};

use crate::labs::{service_with, start};
use crate::site::{ONE_NAMESPACE, Site};

#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_stands_by_shows_the_history_and_continues_it() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    let Some(nats) = NatsServer::start(own_address(), "") else { return println!("{}", nats::SKIPPED) };
    site.install_definition().await;
    let labs = site.namespace("labs").await;
    let process = || {
        service_with(&site, "single", &labs, |config| {
            config["history"] = json!({ "nats": { "servers": [nats.url()] } });
        })
    };
    let (mut first, mut second) = (process(), process());
    first.run().await.unwrap();
    second.begin().unwrap();
    second.logged("this one stands by").await.unwrap();
    start(&first.user("ada").unwrap(), "ada").await;
    let history = format!("{PREFIX}/labs/ada/history");
    let at_the_leader = first.user("ada").unwrap().get(&history).await.unwrap().json().unwrap();
    let ada = second.user("ada").unwrap();
    until_some(async || {
        let answer = ada.get(&history).await.unwrap();
        (answer.status == 200 && answer.json().unwrap() == at_the_leader).then_some(())
    })
    .await;
    let id = at_the_leader[0]["job_id"].as_str().unwrap();
    let job = format!("{PREFIX}/jobs/{id}");
    let shown = ada.get(&job).await.unwrap().json().unwrap();
    assert_eq!((&shown["username"], &shown["events"]), (&json!("ada"), &at_the_leader[0]["events"]));
    let eve = second.user("eve").unwrap();
    assert_eq!(eve.get(&job).await.unwrap().problem().unwrap(), "404 unknown_job");
    assert_eq!(ada.lab("ada").await.unwrap().problem().unwrap(), "503 not_ready", "it does not lead");

    first.kill();
    second.until_ready().await.unwrap();
    until_running(&ada, "ada").await;
    assert_eq!(ada.get(&history).await.unwrap().json().unwrap(), at_the_leader);
    let replayed = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(replayed.len(), at_the_leader[0]["events"].as_array().unwrap().len());
    ada.stop_to_end("ada").await.unwrap();
    site.leave().await;
}

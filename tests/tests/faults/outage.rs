//! Outages during which the API server is not reachable.

use std::time::{Duration, Instant};

use wasmspawner_tests::api::{Answer, Client};
use wasmspawner_tests::proxy::{Fault, Rule};

use crate::setup::{Setup, eventually, lab, start, stop};

/// Time limit of a request for a lab during the outage.
const ANSWER: Duration = Duration::from_secs(15);

async fn refused_in_time(client: &Client, name: &str) {
    let asked = Instant::now();
    refused(&client.spawn(name).await.unwrap(), asked);
}

async fn stop_refused_in_time(client: &Client, name: &str) {
    let asked = Instant::now();
    refused(&client.stop(name).await.unwrap(), asked);
}

fn refused(answer: &Answer, asked: Instant) {
    assert_eq!(answer.status, 503, "{answer:?}");
    assert!(!answer.header("retry-after").is_empty(), "{answer:?}");
    assert!(asked.elapsed() < ANSWER, "answered after {:?}", asked.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_during_a_spawn_only_delays_it() {
    spawns_through_an_outage(&Setup::start(|_| {}).await).await;
}

pub(crate) async fn spawns_through_an_outage(setup: &Setup) {
    let (ada, grace) = (setup.service.user("ada").unwrap(), setup.service.user("grace").unwrap());
    // The outage begins after the namespace exists and before the pod does.
    let late = setup.proxy.add(Rule::new("create pods", Fault::Drop));
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    eventually("the pod is asked for", async || (late.hits() > 0).then_some(())).await;
    setup.proxy.set_outage(true).await.unwrap();
    refused_in_time(&grace, "grace").await;
    assert_eq!(lab(&ada, "ada").await["status"], "starting");
    setup.proxy.clear();
    setup.proxy.set_outage(false).await.unwrap();
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    eventually("grace may spawn again", async || {
        (grace.spawn("grace").await.unwrap().status == 303).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_outage_during_a_stop_only_delays_it() {
    let setup = Setup::start(|_| {}).await;
    setup.service.user("ada").unwrap().spawn_to_end("ada").await.unwrap();
    stops_through_an_outage(&setup).await;
}

/// Stops a lab through an outage. ada must have a lab.
pub(crate) async fn stops_through_an_outage(setup: &Setup) {
    let ada = setup.service.user("ada").unwrap();
    let late = setup.proxy.add(Rule::new("delete pods", Fault::Drop));
    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    eventually("the pod is asked to go", async || (late.hits() > 0).then_some(())).await;
    setup.proxy.set_outage(true).await.unwrap();
    refused_in_time(&setup.service.user("edsger").unwrap(), "edsger").await;
    assert_eq!(lab(&ada, "ada").await["status"], "terminating");
    setup.proxy.clear();
    setup.proxy.set_outage(false).await.unwrap();
    let events = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(events.last().unwrap().kind, "complete", "{events:#?}");
    setup.nothing_is_left("ada", "nothing is left").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_running_lab_stays_running_through_an_outage() {
    let setup = Setup::start(|_| {}).await;
    let (ada, grace) = (setup.service.user("ada").unwrap(), setup.service.user("grace").unwrap());
    let events = ada.spawn_to_end("ada").await.unwrap();
    setup.proxy.set_outage(true).await.unwrap();
    refused_in_time(&grace, "grace").await;
    let answer = ada.stop("ada").await.unwrap();
    assert_eq!((answer.status, answer.header("retry-after").is_empty()), (503, false), "{answer:?}");
    assert_eq!(lab(&ada, "ada").await["status"], "running", "a stop that is not written down has not begun");
    setup.proxy.set_outage(false).await.unwrap();
    assert_eq!(ada.events("ada").await.unwrap().to_end().await.unwrap(), events, "no other operation began");
    assert_eq!(lab(&ada, "ada").await["status"], "running");
    stop(&ada, "ada").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_balancer_that_refuses_requests_is_an_outage() {
    let setup = Setup::start(|_| {}).await;
    let (ada, grace) = (setup.service.user("ada").unwrap(), setup.service.user("grace").unwrap());
    ada.spawn_to_end("ada").await.unwrap();
    setup.proxy.add(Rule::new("", Fault::UNAVAILABLE));
    setup.proxy.add(Rule::new("watch", Fault::Reset));
    refused_in_time(&grace, "grace").await;
    assert_eq!(lab(&ada, "ada").await["status"], "running");
    setup.proxy.clear();
    // Changes that the watches missed are observed soon afterwards.
    start(&grace, "grace").await;
    stop(&ada, "ada").await;
    setup.nothing_is_left("ada", "nothing is left").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_api_server_that_does_not_answer_is_an_outage() {
    for fault in [Fault::Delay(Duration::from_mins(10)), Fault::Stall] {
        let setup = Setup::start(|_| {}).await;
        let (ada, grace) = (setup.service.user("ada").unwrap(), setup.service.user("grace").unwrap());
        ada.spawn_to_end("ada").await.unwrap();
        for verb in ["create", "read", "update", "patch", "delete"] {
            setup.proxy.add(Rule::new(&format!("{verb} "), fault.clone()));
        }
        refused_in_time(&grace, "grace").await;
        assert_eq!(lab(&ada, "ada").await["status"], "running");
        setup.proxy.clear();
        start(&grace, "grace").await;
        stop(&ada, "ada").await;
        setup.nothing_is_left("ada", "nothing is left").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_that_starts_in_an_outage_waits_for_its_end() {
    let mut setup = Setup::start(|_| {}).await;
    let ada = setup.service.user("ada").unwrap();
    ada.spawn_to_end("ada").await.unwrap();
    setup.service.kill();
    setup.proxy.set_outage(true).await.unwrap();
    let proxy = setup.proxy.clone();
    let probes = setup.service.probes();
    let client = ada.clone();
    let meanwhile = async move {
        let alive =
            async || probes.get("/healthz").await.is_ok_and(|answer| answer.status == 200).then_some(());
        eventually("it lives", alive).await;
        let answer = client.lab("ada").await.unwrap();
        assert_eq!(answer.status, 503, "it does not know yet: {answer:?}");
        proxy.set_outage(false).await.unwrap();
    };
    let (running, ()) = tokio::join!(setup.service.run(), meanwhile);
    running.unwrap();
    let runs = async || (lab(&ada, "ada").await["status"] == "running").then_some(());
    eventually("it runs", runs).await;
}

/// The record of a spawn is written, but the answer is lost until the request's time limit has passed.
#[tokio::test(flavor = "multi_thread")]
async fn a_record_whose_answer_was_lost_does_not_block_the_next_spawn() {
    let setup = Setup::start(|_| {}).await;
    for name in ["ada", "grace"] {
        let user = setup.service.user(name).unwrap();
        let lost = setup.proxy.add(Rule::new("spawns/lab-", Fault::LoseAnswer));
        refused_in_time(&user, name).await;
        assert!(lost.hits() > 0);
        assert_eq!(setup.left(name).await, [format!("Spawn lab-{name}")]);
        setup.proxy.clear();
        if name == "ada" {
            start(&user, name).await;
            stop(&user, name).await;
        } else {
            // Without a further request the record is deleted, once the API server answers.
            setup.proxy.add(Rule::new("watch spawns", Fault::Reset).times(1));
            setup.nothing_is_left(name, "the record is gone").await;
            assert!(lab(&user, name).await.is_null());
        }
    }
}

/// The second caller waits for the first, but must still be answered within one time limit.
#[tokio::test(flavor = "multi_thread")]
async fn parallel_requests_for_one_lab_are_all_refused_in_time() {
    for fault in [None, Some(Fault::Delay(Duration::from_mins(10)))] {
        let setup = Setup::start(|_| {}).await;
        let (ada, grace) = (setup.service.user("ada").unwrap(), setup.service.user("grace").unwrap());
        let hub = setup.service.hub().unwrap();
        let events = ada.spawn_to_end("ada").await.unwrap();
        match &fault {
            None => setup.proxy.set_outage(true).await.unwrap(),
            Some(fault) => {
                for verb in ["create", "read", "update", "patch", "delete"] {
                    setup.proxy.add(Rule::new(&format!("{verb} "), fault.clone()));
                }
            }
        }
        tokio::join!(
            refused_in_time(&grace, "grace"),
            refused_in_time(&grace, "grace"),
            refused_in_time(&grace, "grace/servers/second"),
            stop_refused_in_time(&ada, "ada"),
            stop_refused_in_time(&ada, "ada"),
            stop_refused_in_time(&hub, "ada"),
        );
        assert_eq!(lab(&ada, "ada").await["status"], "running", "{fault:?}");
        setup.proxy.clear();
        setup.proxy.set_outage(false).await.unwrap();
        assert_eq!(ada.events("ada").await.unwrap().to_end().await.unwrap(), events, "{fault:?}");
        start(&grace, "grace").await;
        stop(&ada, "ada").await;
        setup.nothing_is_left("ada", "nothing is left").await;
    }
}

//! Runs a schedule, and checks the state at the end.

use std::time::Duration;

use kube::api::DeleteParams;
use serde_json::Value;
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_tests::api::{Client, PREFIX};
use wasmspawner_tests::proxy::Rule;

use super::pure_core;
use super::schedule::{Schedule, Step, USERS};
use crate::setup::{Setup, eventually, lab, stop};

/// The time that a user waits for an answer. The service may still carry out the request afterwards.
const ANSWER: Duration = Duration::from_secs(2);
/// The maximum time that [`Step::Await`] waits.
const MOMENT: Duration = Duration::from_millis(400);

/// A user who starts and stops a lab.
struct Person {
    name: String,
    client: Client,
    /// True if a stop was accepted, and no spawn was requested since.
    stopped: bool,
    /// True if the person did not wait for an answer. The service may then still carry out that request at any time.
    unanswered: bool,
}

/// Runs a schedule, and checks the state at the end.
pub(crate) async fn run(setup: &mut Setup, schedule: &Schedule) {
    let mut people: Vec<Person> = (0..USERS)
        .map(|number| {
            let name = schedule.user(number);
            let client = setup.service.user(&name).unwrap();
            Person { name, client, stopped: false, unanswered: false }
        })
        .collect();
    for step in &schedule.steps {
        take(setup, &mut people, step).await;
    }
    heal(setup).await;
    let seed = schedule.seed;
    for person in &people {
        let name = &person.name;
        eventually(&format!("SOAK_SEED={seed}: the lab of {name} comes to rest"), async || {
            let lab = lab(&person.client, name).await;
            let rests = if person.stopped { lab.is_null() } else { is_at_rest(&lab) };
            rests.then_some(())
        })
        .await;
        if !person.unanswered {
            agrees_with_the_core(setup, person, schedule).await;
        }
        stop(&person.client, name).await;
    }
    for person in &people {
        let name = &person.name;
        setup.nothing_is_left(name, &format!("SOAK_SEED={seed}: nothing is left of {name}")).await;
        nothing_is_open(person, seed).await;
    }
    assert!(!setup.service.log().contains("panicked"), "SOAK_SEED={seed}: {}", setup.service.log());
}

/// Checks that the service answers for a lab at rest as the pure core does: the lab's status, and the acceptance of a
/// spawn or a stop.
async fn agrees_with_the_core(setup: &Setup, person: &Person, schedule: &Schedule) {
    let (name, seed) = (&person.name, schedule.seed);
    let what = format!("SOAK_SEED={seed}: service and core agree on the lab of {name}");
    eventually(&what, async || {
        let before = pure_core::lab(setup, name).await;
        let status = lab(&person.client, name).await["status"].as_str().map(ToOwned::to_owned);
        if status.as_deref() != before.lab.status().map(LabStatus::as_str) {
            return None;
        }
        // One request for each lab, because the first one changes it.
        let (answer, expected) = if schedule.asks_for_spawn() {
            (person.client.spawn(name).await.unwrap(), before.answer_to_spawn())
        } else {
            (person.client.stop(name).await.unwrap(), before.answer_to_stop())
        };
        // A refusal may have a temporary reason: the service has not noticed yet that its cluster is reachable again,
        // or a record is being deleted at that moment. Accepting a request that the core refuses is always wrong.
        let accepted = answer.status < 400;
        assert!(
            answer.status == expected || !accepted || before.record_deleted,
            "SOAK_SEED={seed}: {name} is {:?}, but the service answers {answer:?}",
            before.lab.phase
        );
        (answer.status == expected).then_some(())
    })
    .await;
}

async fn take(setup: &mut Setup, people: &mut [Person], step: &Step) {
    match step {
        Step::Spawn(user) => {
            let person = &mut people[*user];
            let answer = tokio::time::timeout(ANSWER, person.client.spawn(&person.name)).await;
            let refused = matches!(&answer, Ok(Ok(answer)) if answer.status == 409);
            person.stopped &= refused;
            person.unanswered |= answer.is_err();
        }
        Step::Stop(user) => {
            let person = &mut people[*user];
            let answer = tokio::time::timeout(ANSWER, person.client.stop(&person.name)).await;
            person.stopped |= matches!(&answer, Ok(Ok(answer)) if answer.status == 202);
            person.unanswered |= answer.is_err();
        }
        Step::Crash => {
            // The service becomes ready only when it can reach its cluster.
            heal(setup).await;
            setup.service.crash_and_restart().await.unwrap();
            for person in people {
                person.unanswered = false;
            }
        }
        Step::DeleteRecord(user) => {
            let name = format!("lab-{}", people[*user].name);
            let _ = setup.records().delete(&name, &DeleteParams::default()).await;
        }
        Step::DeletePod(user) => {
            let name = &people[*user].name;
            let _ = setup.pods_of(name).delete(&format!("nb-{name}"), &DeleteParams::default()).await;
        }
        Step::DeleteNamespace(user) => {
            let name = setup.namespace_of(&people[*user].name);
            let _ = setup.namespaces().delete(&name, &DeleteParams::default()).await;
        }
        Step::Fault(pattern, fault, times) => {
            setup.proxy.add(Rule::new(pattern, fault.clone()).times(*times));
        }
        Step::Outage => setup.proxy.set_outage(true).await.unwrap(),
        Step::Heal => heal(setup).await,
        Step::Await(user) => {
            let person = &people[*user];
            let rest = eventually("rest", async || {
                is_at_rest(&lab(&person.client, &person.name).await).then_some(())
            });
            let _ = tokio::time::timeout(MOMENT, rest).await;
        }
    }
}

async fn heal(setup: &Setup) {
    setup.proxy.clear();
    setup.proxy.set_outage(false).await.unwrap();
}

fn is_at_rest(lab: &Value) -> bool {
    matches!(lab["status"].as_str(), None | Some("running" | "failed"))
}

/// Checks that the user has no operation under way, and that every stop has ended.
async fn nothing_is_open(person: &Person, seed: u64) {
    let path = format!("{PREFIX}/labs/{}/history", person.name);
    let answer = person.client.get(&path).await.unwrap();
    if answer.status == 404 {
        return;
    }
    let history = answer.json().unwrap();
    for operation in history.as_array().unwrap() {
        let closed = operation["ended_at"].is_string() && !operation["outcome"].is_null();
        assert!(closed, "SOAK_SEED={seed}: {}: {operation:#}", person.name);
    }
}

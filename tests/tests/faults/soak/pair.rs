//! Random schedules for two processes of one installation: each may be killed, stopped for a while and continued, asked to
//! end, or cut off from the API server, while users start and stop labs at whichever process answers.
//!
//! The epoch of no record may ever fall, which would be a write of an earlier leader. A lab that was seen running, and that
//! nobody has stopped since, keeps its pod. When all faults are over, all labs come to rest and can be stopped, and nothing
//! is left.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{Api, DeleteParams, DynamicObject, WatchEvent, WatchParams};
use serde_json::Value;
use tokio::task::JoinHandle;
use wasmspawner_tests::api::{Answer, Client};
use wasmspawner_tests::proxy::{Proxy, Rule};
use wasmspawner_tests::service::Service;

use super::schedule::{PairSchedule, PairStep, Trouble, USERS};
use super::{Schedules, limits};
use crate::setup::{Setup, eventually};

/// The time that a user waits for the answer of one process.
const ANSWER: Duration = Duration::from_secs(2);
/// The time that [`PairStep::Await`] waits for a lab to come to rest.
const MOMENT: Duration = Duration::from_secs(3);
/// Default number of schedules in a test run.
const RUNS: u64 = 12;
/// The number of schedules that run in parallel.
const LANES: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_lose_nothing_in_random_trouble() {
    super::run_all(RUNS, LANES, async |_, schedules: Schedules| {
        let mut pair = Pair::start().await;
        let mut done = 0;
        while let Some(seed) = schedules.next() {
            let schedule = PairSchedule::from_seed(seed);
            println!("soak of two: {schedule:?}");
            pair.run(&schedule).await;
            done += 1;
        }
        done
    })
    .await;
}

/// One process, and the proxy through which it reaches the API server.
struct Replica {
    service: Service,
    proxy: Proxy,
}

/// Two processes of an installation. The first one is a part of the setup.
struct Pair {
    setup: Setup,
    other: Replica,
    records: Audit,
}

/// A user who starts and stops a lab.
struct Person {
    name: String,
    clients: [Client; 2],
    /// The uid of the pod of a lab that was seen running. `None` once somebody has done something that may end it.
    runs: Option<String>,
}

impl Pair {
    async fn start() -> Self {
        let setup = Setup::start(limits).await;
        let (mut service, proxy) = setup.another(limits).await;
        service.begin().unwrap();
        let records = Audit::begin(setup.records());
        Self { setup, other: Replica { service, proxy }, records }
    }

    async fn run(&mut self, schedule: &PairSchedule) {
        let seed = schedule.seed;
        let mut people: Vec<Person> = (0..USERS).map(|number| self.person(schedule.user(number))).collect();
        for step in &schedule.steps {
            self.take(&mut people, step).await;
            self.revive();
        }
        self.heal().await;
        for person in &people {
            let name = &person.name;
            let lab = eventually(&format!("SOAK_SEED={seed}: the lab of {name} comes to rest"), async || {
                self.lab(person).await.filter(is_at_rest)
            })
            .await;
            if let Some(pod) = &person.runs {
                assert_eq!(lab["status"], "running", "SOAK_SEED={seed}: {name} is lost: {lab:#}");
                assert_eq!(self.pod(name).await.as_ref(), Some(pod), "SOAK_SEED={seed}: {name}");
            }
        }
        for person in &people {
            self.stop(person, seed).await;
            let name = &person.name;
            self.setup.nothing_is_left(name, &format!("SOAK_SEED={seed}: nothing is left of {name}")).await;
        }
        self.records.check(seed);
        for service in [&self.setup.service, &self.other.service] {
            assert!(!service.log().contains("panicked"), "SOAK_SEED={seed}: {}", service.log());
        }
    }

    fn person(&self, name: String) -> Person {
        let clients = [&self.setup.service, &self.other.service].map(|service| service.user(&name).unwrap());
        Person { name, clients, runs: None }
    }

    async fn take(&mut self, people: &mut [Person], step: &PairStep) {
        match step {
            PairStep::Spawn(user) => {
                let person = &people[*user];
                let name = &person.name;
                let _ = ask(person, async |client: &Client| client.spawn(name).await.ok()).await;
            }
            PairStep::Stop(user) => {
                people[*user].runs = None;
                let person = &people[*user];
                let _ = ask(person, async |client: &Client| client.stop(&person.name).await.ok()).await;
            }
            PairStep::DeletePod(user) => {
                people[*user].runs = None;
                let name = &people[*user].name;
                let _ =
                    self.setup.pods_of(name).delete(&format!("nb-{name}"), &DeleteParams::default()).await;
            }
            PairStep::Await(user) => {
                let person = &mut people[*user];
                let rest = eventually("rest", async || self.lab(person).await.filter(is_at_rest));
                let rest = tokio::time::timeout(MOMENT, rest).await;
                if rest.is_ok_and(|lab| lab["status"] == "running") {
                    person.runs = self.pod(&person.name).await;
                }
            }
            PairStep::Trouble(replica, trouble) => self.trouble(*replica, trouble).await,
            PairStep::Heal => self.heal().await,
        }
    }

    async fn trouble(&mut self, replica: usize, trouble: &Trouble) {
        let (service, proxy) = self.replica(replica);
        match trouble {
            Trouble::Kill => {
                service.kill();
                service.begin().unwrap();
            }
            Trouble::Freeze => service.freeze().unwrap(),
            Trouble::Thaw => service.thaw().unwrap(),
            Trouble::Terminate => {
                service.thaw().unwrap();
                service.ask_to_end().unwrap();
            }
            Trouble::CutOff => proxy.set_outage(true).await.unwrap(),
            Trouble::Fault(pattern, fault, times) => {
                proxy.add(Rule::new(pattern, fault.clone()).times(*times));
            }
        }
    }

    fn replica(&mut self, number: usize) -> (&mut Service, &Proxy) {
        match number {
            0 => (&mut self.setup.service, &self.setup.proxy),
            _ => (&mut self.other.service, &self.other.proxy),
        }
    }

    /// Starts a process again that has ended, as Kubernetes does.
    fn revive(&mut self) {
        for number in 0..2 {
            let (service, _) = self.replica(number);
            if service.has_ended().unwrap() {
                service.begin().unwrap();
            }
        }
    }

    async fn heal(&mut self) {
        for number in 0..2 {
            let (service, proxy) = self.replica(number);
            service.thaw().unwrap();
            proxy.clear();
            proxy.set_outage(false).await.unwrap();
        }
        self.revive();
    }

    /// The lab as the process that leads shows it; null if there is none.
    async fn lab(&self, person: &Person) -> Option<Value> {
        let answer = ask(person, async |client: &Client| client.lab(&person.name).await.ok()).await?;
        match answer.status {
            200 => answer.json().ok(),
            404 => Some(Value::Null),
            _ => None,
        }
    }

    /// The uid of the user's pod.
    async fn pod(&self, name: &str) -> Option<String> {
        self.setup.pods_of(name).get_opt(&format!("nb-{name}")).await.unwrap()?.metadata.uid
    }

    async fn stop(&mut self, person: &Person, seed: u64) {
        let name = &person.name;
        eventually(&format!("SOAK_SEED={seed}: the lab of {name} is stopped"), async || {
            self.revive();
            let answer = ask(person, async |client: &Client| client.stop(name).await.ok()).await?;
            matches!(answer.status, 202 | 404).then_some(())
        })
        .await;
        eventually(&format!("SOAK_SEED={seed}: {name} is gone"), async || {
            self.revive();
            self.lab(person).await.filter(Value::is_null)
        })
        .await;
    }
}

/// The first answer of a process that leads. A process that is stopped does not answer.
async fn ask(person: &Person, request: impl AsyncFn(&Client) -> Option<Answer>) -> Option<Answer> {
    for client in &person.clients {
        if let Ok(Some(answer)) = tokio::time::timeout(ANSWER, request(client)).await
            && answer.status != 503
        {
            return Some(answer);
        }
    }
    None
}

fn is_at_rest(lab: &Value) -> bool {
    matches!(lab["status"].as_str(), None | Some("running" | "failed"))
}

/// Follows all writes of records at the API server itself.
struct Audit {
    problems: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Audit {
    fn begin(records: Api<DynamicObject>) -> Self {
        let problems = Arc::new(Mutex::new(Vec::new()));
        let found = Arc::clone(&problems);
        let task = tokio::spawn(async move {
            let mut epochs: HashMap<String, u64> = HashMap::new();
            let mut changes = records.watch(&WatchParams::default(), "0").await.unwrap().boxed();
            while let Some(change) = changes.next().await {
                let record = match change.unwrap() {
                    WatchEvent::Added(record) | WatchEvent::Modified(record) => record,
                    WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) => continue,
                    // `check` sees that the task has ended.
                    WatchEvent::Error(_) => return,
                };
                let epoch = record.data["spec"]["epoch"].as_u64().unwrap_or_default();
                let uid = record.metadata.uid.unwrap();
                let before = epochs.insert(uid, epoch).unwrap_or_default();
                if epoch < before {
                    let text = format!("{:?}: {epoch} after {before}", record.metadata.name);
                    found.lock().unwrap_or_else(PoisonError::into_inner).push(text);
                }
            }
        });
        Self { problems, task }
    }

    fn check(&self, seed: u64) {
        assert!(!self.task.is_finished(), "SOAK_SEED={seed}: the audit has ended");
        let problems = self.problems.lock().unwrap_or_else(PoisonError::into_inner);
        assert!(problems.is_empty(), "SOAK_SEED={seed}: an earlier leader has written: {problems:?}");
    }
}

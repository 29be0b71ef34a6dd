//! An API server and a kubelet, and waiting for what they do.

use std::future::Future;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::api::core::v1::{Event, Namespace, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::runtime::wait::await_condition;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::apiserver::{ApiServer, Options};
use crate::kubelet::{
    BackoffOptions, ImageCommand, Kubelet, KubeletLogs, KubeletOptions, OnShutdown, ProcessOptions, Runtime,
    SimulatedOptions, kill_leftovers,
};

/// Longer than anything here should take on a busy machine.
const BOUND: Duration = Duration::from_secs(90);

/// The same for simulated pods: paused time costs nothing, and back-offs take long.
const SIMULATED_BOUND: Duration = Duration::from_hours(1);

pub(super) const NAMESPACE: &str = "lab-alice";

pub(super) struct Cluster {
    pub(super) server: ApiServer,
    kubelet: JoinHandle<()>,
    pub(super) logs: std::sync::Arc<KubeletLogs>,
    bound: Duration,
    /// Ends the kubelet, also when a test fails.
    shutdown: DropGuard,
}

impl Cluster {
    pub(super) async fn simulated(options: SimulatedOptions) -> Self {
        let server = ApiServer::open(Options::default()).unwrap();
        Self::start(server, Runtime::Simulated(options)).await
    }

    pub(super) async fn processes(state: &Path) -> Self {
        let server = ApiServer::open(Options::default()).unwrap();
        Self::start(server, Runtime::Process(processes(state, OnShutdown::Kill))).await
    }

    pub(super) async fn start(server: ApiServer, runtime: Runtime) -> Self {
        let bound = if matches!(runtime, Runtime::Process(_)) { BOUND } else { SIMULATED_BOUND };
        let mut options = KubeletOptions::new("local", runtime);
        options.node_labels = [("zone".to_owned(), "here".to_owned())].into();
        if let Runtime::Process(_) = options.runtime {
            options.backoff =
                BackoffOptions { base: Duration::from_millis(200), max: Duration::from_secs(1) };
            options.retry = Duration::from_millis(100);
        }
        let kubelet = Kubelet::new(server.client(), options).unwrap();
        let logs = kubelet.logs();
        server.set_pod_logs(logs.clone());
        let namespaces: Api<Namespace> = Api::all(server.client());
        let namespace = json!({"metadata": {"name": NAMESPACE}});
        // It exists already after a restart.
        let _ = namespaces.create(&PostParams::default(), &serde_json::from_value(namespace).unwrap()).await;
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(kubelet.run(shutdown.clone()));
        Self { server, kubelet: running, logs, bound, shutdown: shutdown.drop_guard() }
    }

    /// Ends the kubelet, not the API server.
    pub(super) async fn stop(self) -> ApiServer {
        drop(self.shutdown);
        bounded("the kubelet to end", self.kubelet).await.unwrap();
        self.server
    }

    pub(super) fn client(&self) -> Client {
        self.server.client()
    }

    pub(super) fn pods(&self) -> Api<Pod> {
        Api::namespaced(self.client(), NAMESPACE)
    }

    pub(super) async fn create<K>(&self, object: Value)
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope, DynamicType = ()>
            + Clone
            + std::fmt::Debug
            + serde::Serialize
            + serde::de::DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client(), NAMESPACE);
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    /// Creates the pod `nb` with these annotations of the simulated kubelet and this spec.
    pub(super) async fn lab(&self, annotations: &[(&str, &str)], spec: Value) {
        self.create::<Pod>(lab("nb", annotations, &spec)).await;
    }

    /// Waits until the pod `nb` is as wanted.
    pub(super) async fn until(&self, what: &str, holds: impl Fn(&Pod) -> bool) -> Pod {
        self.until_pod("nb", what, holds).await
    }

    pub(super) async fn until_pod(&self, name: &str, what: &str, holds: impl Fn(&Pod) -> bool) -> Pod {
        let wanted = |pod: Option<&Pod>| pod.is_some_and(&holds);
        let found = tokio::time::timeout(self.bound, await_condition(self.pods(), name, wanted)).await;
        match found {
            Ok(pod) => pod.unwrap().unwrap(),
            Err(tokio::time::error::Elapsed { .. }) => {
                panic!("{name} never became {what}: {:#?}", self.pods().get_opt(name).await)
            }
        }
    }

    /// Waits until the pod is no more.
    pub(super) async fn until_gone(&self, name: &str) {
        let gone = |pod: Option<&Pod>| pod.is_none();
        bounded("the pod to go", Box::pin(await_condition(self.pods(), name, gone))).await.unwrap();
    }

    pub(super) async fn delete(&self) {
        self.pods().delete("nb", &DeleteParams::default()).await.unwrap();
    }

    /// Waits until there is an event with this reason whose message contains the text.
    pub(super) async fn until_event(&self, reason: &str, text: &str) -> Event {
        let api: Api<Event> = Api::namespaced(self.client(), NAMESPACE);
        let found = async {
            let mut events =
                std::pin::pin!(watcher(api.clone(), watcher::Config::default()).applied_objects());
            while let Some(event) = futures::StreamExt::next(&mut events).await {
                let event = event.unwrap();
                if event.reason.as_deref() == Some(reason)
                    && event.message.as_deref().unwrap_or_default().contains(text)
                {
                    return event;
                }
            }
            unreachable!("watches do not end")
        };
        match tokio::time::timeout(self.bound, found).await {
            Ok(event) => event,
            Err(tokio::time::error::Elapsed { .. }) => {
                panic!("no event {reason} {text:?}; there are {:#?}", self.reasons().await)
            }
        }
    }

    /// Reasons of all events, oldest first.
    pub(super) async fn reasons(&self) -> Vec<String> {
        let api: Api<Event> = Api::namespaced(self.client(), NAMESPACE);
        let mut events = api.list(&ListParams::default()).await.unwrap().items;
        let number = |event: &Event| event.resource_version().and_then(|v| v.parse::<u64>().ok());
        events.sort_by_key(|event| {
            (event.metadata.creation_timestamp.clone().map(|t| t.0), event.name_any(), number(event))
        });
        events.into_iter().filter_map(|event| event.reason).collect()
    }
}

pub(super) async fn bounded<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// A pod with one container `notebook` on port 8888, changed by `spec`.
pub(super) fn lab(name: &str, annotations: &[(&str, &str)], spec: &Value) -> Value {
    let annotations: serde_json::Map<_, _> =
        annotations.iter().map(|(key, value)| (format!("simulated.kubelet/{key}"), json!(value))).collect();
    let mut pod = json!({
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"terminationGracePeriodSeconds": 5, "containers": [
            {"name": "notebook", "image": "lab:1", "ports": [{"name": "notebook", "containerPort": 8888}]},
        ]},
    });
    json_patch::merge(&mut pod["spec"], spec);
    pod
}

/// A state directory whose processes end with it, also when a test fails.
pub(super) struct State(tempfile::TempDir);

impl State {
    pub(super) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for State {
    fn drop(&mut self) {
        kill_leftovers(self.path()).unwrap();
    }
}

/// `sh` and `python` as images.
pub(super) fn processes(state: &Path, on_shutdown: OnShutdown) -> ProcessOptions {
    let image = |pattern: &str, command: &[&str], args: &[&str]| {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let pattern = pattern.to_owned();
        ImageCommand { pattern, command: words(command), args: words(args), ..ImageCommand::default() }
    };
    let mut options = ProcessOptions::new(state);
    let server = ["python3", "-m", "http.server", "--bind", "{pod_ip}", "{port}"];
    options.images = vec![
        image("sh", &["/bin/sh", "-c"], &["sleep 600"]),
        image("python", &server, &[]),
        image("broken", &["/no/such/program"], &[]),
    ];
    options.on_shutdown = on_shutdown;
    options
}

pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").0 == "True"
}

/// Status and reason of a condition.
pub(super) fn condition<'a>(pod: &'a Pod, kind: &str) -> (&'a str, &'a str) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().find(|condition| condition.type_ == kind).map_or(("", ""), |condition| {
        (condition.status.as_str(), condition.reason.as_deref().unwrap_or_default())
    })
}

/// The first container's status.
pub(super) fn notebook(pod: &Pod) -> k8s_openapi::api::core::v1::ContainerStatus {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.clone());
    statuses.into_iter().flatten().next().unwrap_or_default()
}

/// Reason and message of a waiting container.
pub(super) fn waiting(pod: &Pod) -> (String, String) {
    let waiting = notebook(pod).state.and_then(|state| state.waiting).unwrap_or_default();
    (waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default())
}

/// Exit code and reason of a container that has ended.
pub(super) fn terminated(pod: &Pod) -> Option<(i32, String)> {
    let end = notebook(pod).state?.terminated?;
    Some((end.exit_code, end.reason.unwrap_or_default()))
}

/// Exit code and reason of the run before.
pub(super) fn last(pod: &Pod) -> Option<(i32, String)> {
    let end = notebook(pod).last_state?.terminated?;
    Some((end.exit_code, end.reason.unwrap_or_default()))
}

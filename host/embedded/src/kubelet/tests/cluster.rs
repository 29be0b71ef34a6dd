//! An API server with a kubelet, and functions that wait for their effects.

use std::fmt::Debug;
use std::path::Path;
use std::time::Duration;

use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::core::v1::{ContainerStatus, Event, Namespace, Pod};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::apiserver::{ApiServer, Options};
use crate::kubelet::{
    BackoffOptions, ImageCommand, Kubelet, KubeletOptions, OnShutdown, ProcessOptions, Runtime,
    SimulatedOptions, kill_leftovers,
};

/// A time limit that is longer than any step here should take on a busy machine.
const BOUND: Duration = Duration::from_secs(90);

/// The time limit for simulated pods: paused time costs nothing, and back-offs take long.
const SIMULATED_BOUND: Duration = Duration::from_hours(1);

/// The period of the checks of a condition.
const PERIOD: Duration = Duration::from_millis(50);

pub(super) const NAMESPACE: &str = "lab-alice";

pub(super) struct Cluster {
    server: ApiServer,
    kubelet: JoinHandle<()>,
    bound: Duration,
    /// Ends the kubelet when it is dropped, also if a test fails.
    shutdown: DropGuard,
}

impl Cluster {
    pub(super) async fn simulated() -> Self {
        let server = ApiServer::open(Options::default()).unwrap();
        Self::start(server, Runtime::Simulated(SimulatedOptions::default())).await
    }

    pub(super) async fn processes(state: &Path) -> Self {
        let server = ApiServer::open(Options::default()).unwrap();
        Self::start(server, processes(state, OnShutdown::Kill)).await
    }

    pub(super) async fn start(server: ApiServer, runtime: Runtime) -> Self {
        let mut options = KubeletOptions::new("local", runtime);
        let mut bound = SIMULATED_BOUND;
        if let Runtime::Process(_) = options.runtime {
            let (base, max) = (Duration::from_millis(200), Duration::from_secs(1));
            options.backoff = BackoffOptions { base, max };
            options.retry = Duration::from_millis(100);
            bound = BOUND;
        }
        let kubelet = Kubelet::new(server.client(), options).unwrap();
        server.set_pod_logs(kubelet.logs());
        let namespaces: Api<Namespace> = Api::all(server.client());
        let namespace = serde_json::from_value(json!({"metadata": {"name": NAMESPACE}})).unwrap();
        // The namespace already exists after a restart.
        let _ = namespaces.create(&PostParams::default(), &namespace).await;
        let shutdown = CancellationToken::new();
        let running = tokio::spawn(kubelet.run(shutdown.clone()));
        Self { server, kubelet: running, bound, shutdown: shutdown.drop_guard() }
    }

    /// Ends the kubelet, but not the API server.
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
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
        K: Clone + Debug + Serialize + DeserializeOwned,
    {
        let api: Api<K> = Api::namespaced(self.client(), NAMESPACE);
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    }

    /// Creates the pod `nb` with these annotations of the simulated kubelet and this spec.
    pub(super) async fn lab(&self, annotations: &[(&str, &str)], spec: Value) {
        self.create::<Pod>(lab("nb", annotations, &spec)).await;
    }

    /// Waits until `look` returns a value.
    pub(super) async fn until_some<T>(&self, what: &str, look: impl AsyncFn() -> Option<T>) -> T {
        let mut again = tokio::time::interval(PERIOD);
        let looking = async {
            loop {
                again.tick().await;
                if let Some(found) = look().await {
                    return found;
                }
            }
        };
        let found = tokio::time::timeout(self.bound, looking).await;
        found.unwrap_or_else(|_| panic!("waited in vain for {what}"))
    }

    /// Waits until `holds` is true for the pod `nb`.
    pub(super) async fn until(&self, what: &str, holds: impl Fn(&Pod) -> bool) -> Pod {
        self.until_pod("nb", what, holds).await
    }

    pub(super) async fn until_pod(&self, name: &str, what: &str, holds: impl Fn(&Pod) -> bool) -> Pod {
        self.until_some(what, async || self.pods().get(name).await.ok().filter(&holds)).await
    }

    /// Deletes the pod `nb` and waits until it is gone.
    pub(super) async fn delete(&self) {
        self.pods().delete("nb", &DeleteParams::default()).await.unwrap();
        let gone = async || self.pods().get_opt("nb").await.unwrap().is_none().then_some(());
        self.until_some("the pod's end", gone).await;
    }

    /// Waits until there is an event with this reason whose message contains the text.
    pub(super) async fn until_event(&self, reason: &str, text: &str) -> Event {
        let wanted = |event: &Event| {
            event.reason.as_deref() == Some(reason)
                && event.message.as_ref().is_some_and(|m| m.contains(text))
        };
        let look = async || self.events().await.into_iter().find(&wanted);
        self.until_some(&format!("the event {reason} {text:?}"), look).await
    }

    pub(super) async fn events(&self) -> Vec<Event> {
        let api: Api<Event> = Api::namespaced(self.client(), NAMESPACE);
        api.list(&ListParams::default()).await.unwrap().items
    }
}

pub(super) async fn bounded<T>(what: &str, future: impl Future<Output = T>) -> T {
    tokio::time::timeout(BOUND, future).await.unwrap_or_else(|_| panic!("waited in vain for {what}"))
}

/// Returns a pod with one container `notebook` on port 8888, changed by `spec`.
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

/// A state directory whose processes are killed when it is dropped, also if a test fails.
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

/// Returns a process runtime with the images `sh` and `python`.
pub(super) fn processes(state: &Path, on_shutdown: OnShutdown) -> Runtime {
    let image = |pattern: &str, command: &[&str]| {
        let command = command.iter().map(|word| (*word).to_owned()).collect();
        ImageCommand { pattern: pattern.to_owned(), command, ..ImageCommand::default() }
    };
    let mut options = ProcessOptions::new(state);
    options.images = vec![
        image("sh", &["/bin/sh", "-c"]),
        image("python", &["python3", "-m", "http.server", "--bind", "{pod_ip}", "{port}"]),
        image("broken", &["/no/such/program"]),
    ];
    options.on_shutdown = on_shutdown;
    Runtime::Process(options)
}

pub(super) fn phase(pod: &Pod) -> &str {
    pod.status.as_ref().and_then(|status| status.phase.as_deref()).unwrap_or_default()
}

pub(super) fn ip(pod: &Pod) -> String {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap()
}

pub(super) fn is_ready(pod: &Pod) -> bool {
    condition(pod, "Ready").0 == "True"
}

/// Returns the status and the reason of a condition.
pub(super) fn condition<'a>(pod: &'a Pod, kind: &str) -> (&'a str, &'a str) {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref()).unwrap_or_default();
    conditions.iter().find(|condition| condition.type_ == kind).map_or(("", ""), |condition| {
        (condition.status.as_str(), condition.reason.as_deref().unwrap_or_default())
    })
}

/// Returns the status of the first container.
pub(super) fn notebook(pod: &Pod) -> ContainerStatus {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.clone());
    statuses.into_iter().flatten().next().unwrap_or_default()
}

/// Returns the reason and the message of a waiting container.
pub(super) fn waiting(pod: &Pod) -> (String, String) {
    let waiting = notebook(pod).state.and_then(|state| state.waiting).unwrap_or_default();
    (waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default())
}

/// Returns the exit code and the reason of a container's newest run, if it has ended, and of the run before.
pub(super) fn ends(pod: &Pod) -> [Option<(i32, String)>; 2] {
    let ContainerStatus { state, last_state, .. } = notebook(pod);
    [state, last_state].map(|state| {
        let end = state?.terminated?;
        Some((end.exit_code, end.reason.unwrap_or_default()))
    })
}

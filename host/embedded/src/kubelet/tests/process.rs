//! Real processes.

use std::fs;
use std::path::Path;

use futures::TryStreamExt;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::api::LogParams;
use serde_json::{Value, json};

use super::cluster::*;
use crate::apiserver::{LogRequest, PodLogs};
use crate::kubelet::{OnShutdown, Runtime, kill_leftovers};

/// A container that runs a shell script.
fn script(text: &str) -> Value {
    json!({"containers": [{"name": "notebook", "image": "sh", "args": [text]}]})
}

fn ip(pod: &Pod) -> String {
    pod.status.as_ref().and_then(|status| status.pod_ip.clone()).unwrap()
}

async fn log(cluster: &Cluster) -> String {
    cluster.pods().logs("nb", &LogParams::default()).await.unwrap()
}

#[tokio::test]
async fn a_server_answers_on_its_pods_address() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    let python = || {
        json!({"containers": [{"name": "notebook", "image": "python", "ports": [{"containerPort": 8888}],
            "startupProbe": {"tcpSocket": {"port": 8888}, "periodSeconds": 1, "failureThreshold": 60},
            "readinessProbe": {"httpGet": {"path": "/", "port": 8888}, "periodSeconds": 1}}]})
    };
    cluster.lab(&[], python()).await;
    cluster.create::<Pod>(lab("second", &[], &python())).await;
    let first = cluster.until("ready", is_ready).await;
    let second = cluster.until_pod("second", "ready", is_ready).await;
    assert_ne!(ip(&first), ip(&second));
    for pod in [&first, &second] {
        tokio::net::TcpStream::connect((ip(pod), 8888)).await.unwrap();
    }
    cluster.delete().await;
    cluster.until_gone("nb").await;
    assert!(tokio::net::TcpStream::connect((ip(&first), 8888)).await.is_err());
    assert_eq!(cluster.stop().await.client().default_namespace(), "default");
    assert!(tokio::net::TcpStream::connect((ip(&second), 8888)).await.is_err());
}

#[tokio::test]
async fn the_environment_and_the_volumes_of_a_pod() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    cluster.create::<ConfigMap>(json!({"metadata": {"name": "env"}, "data": {"FROM_MAP": "m"}})).await;
    cluster.create::<Secret>(json!({"metadata": {"name": "nb"}, "stringData": {"token": "s3cret"}})).await;
    let claim = json!({"metadata": {"name": "home"}, "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
    cluster.create::<PersistentVolumeClaim>(claim).await;
    let text = r#"echo "$FROM_MAP $TOKEN $IP $HOME" && cat "$WASMSPAWNER_MOUNT_SECRET/token" && echo kept >file && pwd"#;
    let spec = json!({
        "restartPolicy": "Never",
        "volumes": [
            {"name": "secret", "secret": {"secretName": "nb", "defaultMode": 0o600}},
            {"name": "home", "persistentVolumeClaim": {"claimName": "home"}},
        ],
        "containers": [{
            "name": "notebook", "image": "sh", "args": [text], "workingDir": "/home/alice/work",
            "envFrom": [{"configMapRef": {"name": "env"}}],
            "env": [
                {"name": "HOME", "value": "/home/alice"},
                {"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
                {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "nb", "key": "token"}}},
            ],
            "volumeMounts": [
                {"name": "secret", "mountPath": "/secret"},
                {"name": "home", "mountPath": "/home/alice", "subPath": "alice"},
            ],
        }],
    });
    cluster.lab(&[], spec).await;
    let pod = cluster.until("done", |pod| phase(pod) == "Succeeded").await;
    let home = state.path().join("claims").join(NAMESPACE).join("home/alice");
    let (ip, home_text) = (ip(&pod), home.display());
    assert_eq!(log(&cluster).await, format!("m s3cret {ip} {home_text}\ns3cret{home_text}/work\n"));
    cluster.delete().await;
    cluster.until_gone("nb").await;
    assert_eq!(fs::read_to_string(home.join("work/file")).unwrap(), "kept\n");
}

#[tokio::test]
async fn what_cannot_be_had_here_is_refused() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    let mut spec = script("true");
    spec["volumes"] = json!([{"name": "data", "nfs": {"server": "files", "path": "/data"}}]);
    cluster.lab(&[], spec).await;
    cluster.until_event("FailedMount", "do not exist on a one-machine cluster").await;
    let pod = cluster.until("creating", |pod| waiting(pod).0 == "ContainerCreating").await;
    assert_eq!(phase(&pod), "Pending");
    let mut probed = script("true");
    probed["containers"][0]["livenessProbe"] = json!({"exec": {"command": ["true"]}});
    cluster.create::<Pod>(lab("probed", &[], &probed)).await;
    let pod = cluster.until_pod("probed", "failed", |pod| phase(pod) == "Failed").await;
    assert!(pod.status.unwrap().message.unwrap().ends_with("container notebook: livenessProbe"));
}

#[tokio::test]
async fn images_and_programs_that_are_not_there() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    cluster.lab(&[], json!({"containers": [{"name": "notebook", "image": "unknown:1"}]})).await;
    let pod = cluster.until("in ImagePullBackOff", |pod| waiting(pod).0 == "ImagePullBackOff").await;
    assert!(waiting(&pod).1.contains("no local command is configured for image \"unknown:1\""));
    let broken = json!({"restartPolicy": "Never", "containers": [{"name": "notebook", "image": "broken"}]});
    cluster.create::<Pod>(lab("broken", &[], &broken)).await;
    let pod = cluster.until_pod("broken", "failed", |pod| phase(pod) == "Failed").await;
    assert_eq!(terminated(&pod), Some((128, "StartError".to_owned())));
    cluster.until_event("Failed", "executable file not found in $PATH").await;
}

#[tokio::test]
async fn a_crashing_process_is_restarted_and_its_logs_are_kept() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    // Fails the first two times.
    let text = r#"echo x >>"$WASMSPAWNER_MOUNT_COUNT/n"; runs=$(wc -l <"$WASMSPAWNER_MOUNT_COUNT/n"); echo "run $runs"; [ "$runs" -gt 2 ] || exit 7; sleep 600"#;
    let mut spec = script(text);
    spec["volumes"] = json!([{"name": "count", "emptyDir": {}}]);
    spec["containers"][0]["volumeMounts"] = json!([{"name": "count", "mountPath": "/count"}]);
    cluster.lab(&[], spec).await;
    let pod = cluster.until("restarted twice", |pod| notebook(pod).restart_count == 2 && is_ready(pod)).await;
    assert_eq!(last(&pod), Some((7, "Error".to_owned())));
    cluster.until_event("BackOff", "Back-off restarting failed container").await;
    let follow = LogParams { follow: true, ..LogParams::default() };
    let mut current = Box::pin(cluster.pods().log_stream("nb", &follow).await.unwrap());
    let mut first = [0; 6];
    bounded("the log", futures::AsyncReadExt::read_exact(&mut current, &mut first)).await.unwrap();
    assert_eq!(&first, b"run 3\n");
    let previous = LogParams { previous: true, ..LogParams::default() };
    assert_eq!(cluster.pods().logs("nb", &previous).await.unwrap(), "run 2\n");
}

#[tokio::test]
async fn term_is_sent_and_then_kill() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    let polite = r"trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done";
    let mut spec = script(polite);
    spec["restartPolicy"] = json!("Never");
    cluster.lab(&[], spec).await;
    cluster.until("ready", is_ready).await;
    let request = LogRequest {
        namespace: NAMESPACE.to_owned(),
        pod: "nb".to_owned(),
        container: "notebook".to_owned(),
        follow: true,
        ..LogRequest::default()
    };
    let mut stream = cluster.logs.open(request).await.unwrap();
    assert_eq!(bounded("the first line", stream.try_next()).await.unwrap().unwrap(), "up\n");
    cluster.delete().await;
    let rest = bounded("the end of the log", stream.try_collect::<Vec<_>>()).await.unwrap().concat();
    // The script's own shell may remark on its `sleep`.
    assert!(rest.ends_with(b"bye\n"), "{}", String::from_utf8_lossy(&rest));
    cluster.until_gone("nb").await;

    let deaf = r"trap '' TERM; while :; do sleep 0.05; done";
    let mut spec = script(deaf);
    spec["terminationGracePeriodSeconds"] = json!(1);
    cluster.lab(&[], spec).await;
    cluster.until("ready", is_ready).await;
    cluster.delete().await;
    cluster.until_gone("nb").await;
}

#[tokio::test]
async fn what_has_left_its_process_group_ends_as_well() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    // Like a Jupyter kernel: a session of its own.
    cluster.lab(&[], script("setsid sleep 600 & echo $!; wait")).await;
    let pod = cluster.until("ready", is_ready).await;
    let directory = state.path().join("pods").join(pod.metadata.uid.as_deref().unwrap());
    assert!(directory.exists());
    let marked = || marked_processes(pod.metadata.uid.as_deref().unwrap());
    until_marked(marked).await;
    cluster.delete().await;
    cluster.until_gone("nb").await;
    assert_eq!(marked(), 0);
}

/// Processes that belong to a pod, by their mark.
fn marked_processes(uid: &str) -> usize {
    let wanted = format!("WASMSPAWNER_CONTAINER={uid}/");
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|entry| {
            fs::read(entry.path().join("environ")).is_ok_and(|env| contains(&env, wanted.as_bytes()))
        })
        .count()
}

/// Waits until there is a marked process. Its pod counts as ready as soon as it is started, and on a busy machine Linux
/// lets the parent go on before the child has its environment.
async fn until_marked(marked: impl Fn() -> usize) {
    bounded("the process", async {
        while marked() == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}

#[tokio::test]
async fn processes_survive_a_restart_of_the_kubelet() {
    let state = State::new();
    let runtime = || Runtime::Process(processes(state.path(), OnShutdown::Keep));
    let server = crate::apiserver::ApiServer::open(crate::apiserver::Options::default()).unwrap();
    let first = Cluster::start(server, runtime()).await;
    let text = "while ! [ -e go ]; do sleep 0.05; done; exit 3";
    let mut spec = script(text);
    spec["restartPolicy"] = json!("Never");
    first.lab(&[], spec).await;
    let before = first.until("ready", is_ready).await;
    let uid = before.metadata.uid.clone().unwrap();
    let server = first.stop().await;
    until_marked(|| marked_processes(&uid)).await;

    let second = Cluster::start(server, runtime()).await;
    let home = state.path().join("pods").join(&uid).join("home");
    fs::write(home.join("go"), "").unwrap();
    let after = second.until("failed", |pod| phase(pod) == "Failed").await;
    assert_eq!(
        terminated(&after),
        Some((3, "Error".to_owned())),
        "the exit code of an adopted process is known"
    );
    assert_eq!((ip(&after), notebook(&after).restart_count), (ip(&before), 0));
}

#[tokio::test]
async fn an_end_that_nobody_saw_is_found_out() {
    let state = State::new();
    let runtime = || Runtime::Process(processes(state.path(), OnShutdown::Keep));
    let server = crate::apiserver::ApiServer::open(crate::apiserver::Options::default()).unwrap();
    let first = Cluster::start(server, runtime()).await;
    first.lab(&[], script("sleep 600")).await;
    let before = first.until("ready", is_ready).await;
    let uid = before.metadata.uid.clone().unwrap();
    let server = first.stop().await;
    assert_eq!(kill_leftovers(state.path()).unwrap(), 1);
    bounded("the process to end", async {
        while marked_processes(&uid) > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let second = Cluster::start(server, runtime()).await;
    let after = second.until("running again", |pod| notebook(pod).restart_count == 1 && is_ready(pod)).await;
    assert_eq!(last(&after), Some((255, "Error".to_owned())));
    second.delete().await;
    second.until_gone("nb").await;
    assert!(is_empty(&state.path().join("pods")));
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

#[tokio::test]
async fn a_shutdown_ends_everything() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    cluster.lab(&[], script("sleep 600")).await;
    let pod = cluster.until("ready", is_ready).await;
    let server = cluster.stop().await;
    assert_eq!(marked_processes(pod.metadata.uid.as_deref().unwrap()), 0);
    let pods: kube::Api<Pod> = kube::Api::namespaced(server.client(), NAMESPACE);
    let pod = pods.get("nb").await.unwrap();
    assert_eq!((phase(&pod), pod.status.as_ref().unwrap().reason.as_deref()), ("Failed", Some("Terminated")));
}

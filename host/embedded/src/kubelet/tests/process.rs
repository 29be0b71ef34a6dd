//! Tests with real processes.

use std::fs;
use std::path::Path;

use futures::AsyncReadExt;
use k8s_openapi::api::core::v1::{ConfigMap, PersistentVolumeClaim, Pod, Secret};
use kube::api::LogParams;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::cluster::*;
use crate::apiserver::{ApiServer, Options};
use crate::kubelet::{OnShutdown, kill_leftovers};

/// Returns a pod spec with a container that runs a shell script.
fn script(text: &str) -> Value {
    json!({"restartPolicy": "OnFailure", "containers": [{"name": "notebook", "image": "sh", "args": [text]}]})
}

#[tokio::test]
async fn a_server_answers_on_its_pods_address() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    let python = json!({"containers": [{"name": "notebook", "image": "python", "ports": [{"containerPort": 8888}],
        "startupProbe": {"tcpSocket": {"port": 8888}, "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {"httpGet": {"path": "/", "port": 8888}, "periodSeconds": 1}}]});
    cluster.lab(&[], python.clone()).await;
    cluster.create::<Pod>(lab("second", &[], &python)).await;
    let first = cluster.until("ready", is_ready).await;
    let second = cluster.until_pod("second", "ready", is_ready).await;
    assert_ne!(ip(&first), ip(&second));
    TcpStream::connect((ip(&second), 8888)).await.unwrap();
    cluster.delete().await;
    assert!(TcpStream::connect((ip(&first), 8888)).await.is_err());
    cluster.stop().await;
    assert!(TcpStream::connect((ip(&second), 8888)).await.is_err());
}

#[tokio::test]
async fn a_container_has_its_environment_and_its_volumes() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    cluster.create::<ConfigMap>(json!({"metadata": {"name": "env"}, "data": {"FROM_MAP": "m"}})).await;
    cluster.create::<Secret>(json!({"metadata": {"name": "nb"}, "stringData": {"token": "s3cret"}})).await;
    let claim = json!({"metadata": {"name": "home"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}});
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
    let log = cluster.pods().logs("nb", &LogParams::default()).await.unwrap();
    assert_eq!(log, format!("m s3cret {} {}\ns3cret{}/work\n", ip(&pod), home.display(), home.display()));
    cluster.delete().await;
    assert_eq!(fs::read_to_string(home.join("work/file")).unwrap(), "kept\n");
}

#[tokio::test]
async fn unsupported_fields_unknown_images_and_missing_programs_are_reported() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    let mut mounting = script("true");
    mounting["volumes"] = json!([{"name": "data", "nfs": {"server": "files", "path": "/data"}}]);
    cluster.create::<Pod>(lab("mounting", &[], &mounting)).await;
    let mut probed = script("true");
    probed["containers"][0]["livenessProbe"] = json!({"exec": {"command": ["true"]}});
    cluster.create::<Pod>(lab("probed", &[], &probed)).await;
    let broken = json!({"restartPolicy": "Never", "containers": [{"name": "notebook", "image": "broken"}]});
    cluster.create::<Pod>(lab("broken", &[], &broken)).await;
    cluster.lab(&[], json!({})).await;

    cluster.until_event("FailedMount", "do not exist on a one-machine cluster").await;
    let pod = cluster.until_pod("probed", "failed", |pod| phase(pod) == "Failed").await;
    assert!(pod.status.unwrap().message.unwrap().ends_with("container notebook: livenessProbe"));
    let pod = cluster.until_pod("broken", "failed", |pod| phase(pod) == "Failed").await;
    assert_eq!(ends(&pod)[0], Some((128, "StartError".to_owned())));
    cluster.until_event("Failed", "executable file not found in $PATH").await;
    let pod = cluster.until("in ImagePullBackOff", |pod| waiting(pod).0 == "ImagePullBackOff").await;
    assert!(waiting(&pod).1.contains("no local command is configured for image \"lab:1\""));
}

#[tokio::test]
async fn a_crashing_process_is_restarted_and_its_logs_are_kept() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    // The script fails the first two times.
    let text = r#"echo x >>"$WASMSPAWNER_MOUNT_COUNT/n"; runs=$(wc -l <"$WASMSPAWNER_MOUNT_COUNT/n"); echo "run $runs"; [ "$runs" -gt 2 ] || exit 7; sleep 600"#;
    let mut spec = script(text);
    spec["volumes"] = json!([{"name": "count", "emptyDir": {}}]);
    spec["containers"][0]["terminationMessagePolicy"] = json!("FallbackToLogsOnError");
    spec["containers"][0]["volumeMounts"] = json!([{"name": "count", "mountPath": "/count"}]);
    cluster.lab(&[], spec).await;
    let pod = cluster.until("restarted twice", |pod| notebook(pod).restart_count == 2 && is_ready(pod)).await;
    assert_eq!(ends(&pod)[1], Some((7, "Error".to_owned())));
    let end = notebook(&pod).last_state.unwrap().terminated.unwrap();
    assert_eq!(end.message.as_deref(), Some("run 2\n"));
    cluster.until_event("BackOff", "Back-off restarting failed container").await;
    let mut current = cluster.pods().log_stream("nb", &follow()).await.map(Box::pin).unwrap();
    let mut first = [0; 6];
    bounded("the log", current.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"run 3\n");
    let previous = LogParams { previous: true, ..LogParams::default() };
    assert_eq!(cluster.pods().logs("nb", &previous).await.unwrap(), "run 2\n");
}

fn follow() -> LogParams {
    LogParams { follow: true, ..LogParams::default() }
}

#[tokio::test]
async fn term_is_sent_and_then_kill() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    cluster.lab(&[], script(r"trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.05; done")).await;
    cluster.until("ready", is_ready).await;
    let mut log = cluster.pods().log_stream("nb", &follow()).await.map(Box::pin).unwrap();
    let mut first = [0; 3];
    bounded("the first line", log.read_exact(&mut first)).await.unwrap();
    assert_eq!(&first, b"up\n");
    cluster.delete().await;
    let mut rest = String::new();
    bounded("the end of the log", log.read_to_string(&mut rest)).await.unwrap();
    // The script's own shell may print a message about its `sleep`.
    assert!(rest.ends_with("bye\n"), "{rest}");

    let mut spec = script(r"trap '' TERM; while :; do sleep 0.05; done");
    spec["terminationGracePeriodSeconds"] = json!(1);
    cluster.lab(&[], spec).await;
    cluster.until("ready", is_ready).await;
    cluster.delete().await;
}

#[tokio::test]
async fn processes_outside_the_process_group_end_with_the_pod_and_with_the_kubelet() {
    let state = State::new();
    let cluster = Cluster::processes(state.path()).await;
    // Like a Jupyter kernel, the process starts a session of its own.
    let spec = script("setsid sleep 600 & wait");
    cluster.lab(&[], spec.clone()).await;
    cluster.create::<Pod>(lab("second", &[], &spec)).await;
    let first = uid(&cluster.until("ready", is_ready).await);
    let second = uid(&cluster.until_pod("second", "ready", is_ready).await);
    until_marked(&cluster, &first).await;
    cluster.delete().await;
    assert_eq!(marked_processes(&first), 0);
    until_marked(&cluster, &second).await;
    let pods = cluster.pods();
    let _server = cluster.stop().await;
    assert_eq!(marked_processes(&second), 0);
    let pod = pods.get("second").await.unwrap();
    assert_eq!((phase(&pod), pod.status.as_ref().unwrap().reason.as_deref()), ("Failed", Some("Terminated")));
}

fn uid(pod: &Pod) -> String {
    pod.metadata.uid.clone().unwrap()
}

/// Counts the processes with the mark of a pod.
fn marked_processes(uid: &str) -> usize {
    let wanted = format!("WASMSPAWNER_CONTAINER={uid}/").into_bytes();
    let is_marked = |path: &Path| {
        fs::read(path.join("environ")).is_ok_and(|all| all.split(|b| *b == 0).any(|v| v.starts_with(&wanted)))
    };
    fs::read_dir("/proc").unwrap().flatten().filter(|entry| is_marked(&entry.path())).count()
}

/// Waits until there is a marked process. The pod counts as ready as soon as the process is started, and on a busy
/// machine Linux lets the parent continue before the child has its environment.
async fn until_marked(cluster: &Cluster, uid: &str) {
    cluster.until_some("the process", async || (marked_processes(uid) > 0).then_some(())).await;
}

#[tokio::test]
async fn processes_survive_a_restart_of_the_kubelet() {
    let state = State::new();
    let runtime = || processes(state.path(), OnShutdown::Keep);
    let first = Cluster::start(ApiServer::open(Options::default()).unwrap(), runtime()).await;
    let mut spec = script("while ! [ -e go ]; do sleep 0.05; done; exit 3");
    spec["restartPolicy"] = json!("Never");
    first.lab(&[], spec).await;
    let before = first.until("ready", is_ready).await;
    until_marked(&first, &uid(&before)).await;
    let second = Cluster::start(first.stop().await, runtime()).await;
    fs::write(state.path().join("pods").join(uid(&before)).join("home/go"), "").unwrap();
    let after = second.until("failed", |pod| phase(pod) == "Failed").await;
    let exit = Some((3, "Error".to_owned()));
    assert_eq!(ends(&after)[0], exit, "the exit code of an adopted process is known");
    assert_eq!((ip(&after), notebook(&after).restart_count), (ip(&before), 0));
}

#[tokio::test]
async fn an_end_while_the_kubelet_was_away_is_found_out() {
    let state = State::new();
    let runtime = || processes(state.path(), OnShutdown::Keep);
    let first = Cluster::start(ApiServer::open(Options::default()).unwrap(), runtime()).await;
    first.lab(&[], script("sleep 600")).await;
    first.until("ready", is_ready).await;
    let server = first.stop().await;
    assert_eq!(kill_leftovers(state.path()).unwrap(), 1);
    let second = Cluster::start(server, runtime()).await;
    let after = second.until("running again", |pod| notebook(pod).restart_count == 1 && is_ready(pod)).await;
    assert_eq!(ends(&after)[1], Some((255, "Error".to_owned())));
    second.delete().await;
    let is_empty = async || fs::read_dir(state.path().join("pods")).unwrap().next().is_none().then_some(());
    second.until_some("the removal of the pod's directory", is_empty).await;
}

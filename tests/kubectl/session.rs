//! A kubectl session: the commands of a user, in their usual order.

use crate::shell::Shell;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, BufReader};

fn lab(image: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "lab", "labels": {"app": "lab"}}, "spec": {
        "containers": [{"name": "notebook", "image": image, "ports": [{"containerPort": 8888}]}]}})
}

async fn set_phase(shell: &Shell, phase: &str) {
    let patch = json!({"status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]}});
    shell.ok(&format!("patch pod lab --subresource=status --type=merge -p {patch}")).await;
}

pub(crate) async fn the_server_tells_what_it_serves(shell: &Shell) {
    let output = shell.ok("api-resources").await;
    let pods = output.rows().into_iter().find(|row| row[0] == "pods").map(|row| row.join(" "));
    assert_eq!(pods.as_deref(), Some("pods po v1 true Pod"));
    assert!(output.rows().iter().any(|row| row[0] == "networkpolicies"));
    assert!(shell.ok("version").await.out.contains("Server Version: v1."));
    let output = shell.run("--token=wrong get pods").await;
    assert!(!output.success && output.err.contains("Unauthorized"), "{output:?}");
}

pub(crate) async fn tables_say_what_people_want_to_know(shell: &Shell) {
    shell.with_file("create", &lab("i:1")).await;
    let output = shell.ok("get pods").await;
    assert_eq!(output.rows()[0], ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]);
    assert_eq!(&output.rows()[1][..4], ["lab", "0/1", "Pending", "0"]);
    assert!(shell.ok("get po -o wide").await.out.contains("NODE"));
    assert!(shell.ok("get pods -A").await.has_row(&[&shell.namespace, "lab"]));
    assert_eq!(shell.ok("get pods -l app=hub").await.out, "");
    assert_eq!(shell.ok("get pods -o name").await.out.trim(), "pod/lab");
    assert!(shell.ok("get pod lab -o yaml").await.out.contains("restartPolicy: Always"));
    let phase = shell.ok("get pod lab -o jsonpath={.status.phase}").await;
    assert_eq!(phase.out, "Pending");
    assert!(shell.ok("get ns").await.has_row(&["default", "Active"]));
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": {"a": "b"}});
    shell.with_file("create", &map).await;
    assert!(shell.ok("get cm").await.has_row(&["m"]));
    let output = shell.run("get pod nosuch").await;
    assert!(output.err.contains("pods \"nosuch\" not found"), "{output:?}");
    assert!(shell.ok("get all").await.out.contains("lab"));
}

pub(crate) async fn apply_creates_changes_and_finds_mistakes(shell: &Shell) {
    assert!(shell.with_file("apply", &lab("i:1")).await.out.contains("created"));
    assert!(shell.with_file("apply", &lab("i:1")).await.out.contains("unchanged"));
    assert!(shell.with_file("apply", &lab("i:2")).await.out.contains("configured"));
    assert_eq!(shell.ok("get pod lab -o jsonpath={.spec.containers[0].image}").await.out, "i:2");
    assert!(shell.with_file("diff", &lab("i:2")).await.out.is_empty());

    let map = |data: Value| json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}, "data": data});
    shell.with_file("apply", &map(json!({"a": "1", "b": "2"}))).await;
    shell.with_file("apply", &map(json!({"a": "1"}))).await;
    assert_eq!(shell.ok("get cm m -o jsonpath={.data}").await.out, r#"{"a":"1"}"#);
    let output = shell.with_file("apply --server-side --force-conflicts", &map(json!({"c": "3"}))).await;
    assert!(output.out.contains("serverside-applied"), "{output:?}");

    let home = tempfile::tempdir().unwrap();
    let file = home.path().join("wrong.json");
    std::fs::write(
        &file,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "w"}, "dat": {}}).to_string(),
    )
    .unwrap();
    let output = shell.run(&format!("apply -f {}", file.display())).await;
    assert!(!output.success && output.err.contains("unknown field \"dat\""), "{output:?}");
}

pub(crate) async fn objects_are_edited_described_and_deleted(shell: &Shell) {
    let namespace = format!("{}-a", shell.namespace);
    let n = format!("-n {namespace}");
    shell.new_namespace(&namespace).await;
    shell.with_file(&format!("create {n}"), &lab("i:1")).await;
    shell.ok(&format!("label pod lab tier=gold {n}")).await;
    shell.ok(&format!("annotate pod lab example.com/note=x {n}")).await;
    shell.ok(&format!(r#"patch pod lab {n} -p {{"metadata":{{"labels":{{"more":"y"}}}}}}"#)).await;
    let uid = shell.ok(&format!("get pod lab {n} -o jsonpath={{.metadata.uid}}")).await.out;
    let event = json!({"apiVersion": "v1", "kind": "Event", "metadata": {"name": "lab.1", "namespace": namespace},
        "involvedObject": {"kind": "Pod", "name": "lab", "namespace": namespace, "uid": uid}, "reason": "Pulling",
        "message": "pulling the image", "type": "Normal", "count": 1, "source": {"component": "kubelet"},
        "firstTimestamp": "2024-01-01T00:00:00Z", "lastTimestamp": "2024-01-01T00:00:00Z"});
    shell.with_file("create", &event).await;
    let described = shell.ok(&format!("describe pod lab {n}")).await.out;
    for part in ["tier=gold", "more=y", "example.com/note: x", "notebook:", "pulling the image"] {
        assert!(described.contains(part), "{part} in {described}");
    }
    assert!(shell.ok(&format!("get events {n}")).await.out.contains("lab"));
    assert!(shell.ok(&format!("describe ns {namespace}")).await.out.contains("Active"));
    let output = shell.run(&format!("exec lab {n} -- true")).await;
    assert!(!output.success, "{output:?}");
    assert!(shell.ok(&format!("delete pod lab {n}")).await.out.contains("deleted"));
    shell.ok(&format!("delete namespace {namespace}")).await;
    assert!(!shell.run(&format!("get namespace {namespace}")).await.success);
}

pub(crate) async fn changes_are_watched_and_waited_for(shell: &Shell) {
    shell.with_file("create", &lab("i:1")).await;
    let mut watch = shell.start("get pods -w");
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut next = async || {
        let line = tokio::time::timeout(Duration::from_mins(1), lines.next_line()).await.unwrap();
        line.unwrap().unwrap()
    };
    assert!(next().await.starts_with("NAME"));
    assert!(next().await.contains("Pending"));
    let waiting = shell.start("wait --for=condition=Ready pod/lab --timeout=60s");
    set_phase(shell, "Running").await;
    assert!(next().await.contains("Running"));
    let waited = waiting.wait_with_output().await.unwrap();
    assert!(waited.status.success(), "{waited:?}");
    let gone = shell.start("wait --for=delete pod/lab --timeout=60s");
    shell.ok("delete pod lab --now").await;
    assert!(gone.wait_with_output().await.unwrap().status.success());
    watch.kill().await.unwrap();
}

/// For these kubectl sends protobuf, and nothing else.
pub(crate) async fn objects_are_created_from_arguments(shell: &Shell) {
    let other = format!("{}-other", shell.namespace);
    assert!(shell.ok(&format!("create namespace {other}")).await.out.contains("created"));
    assert!(shell.ok("get ns").await.has_row(&[&other, "Active"]));
    shell.ok(&format!("delete namespace {other} --wait=false")).await;
    shell.ok("create configmap settings --from-literal=size=large --from-literal=empty=").await;
    assert_eq!(shell.ok("get cm settings -o jsonpath={.data}").await.out, r#"{"empty":"","size":"large"}"#);
    shell.ok("create secret generic key --from-literal=password=s3cret").await;
    assert_eq!(shell.ok("get secret key -o jsonpath={.data.password}{.type}").await.out, "czNjcmV0Opaque");
    shell.ok("create secret docker-registry pull --docker-server=r.example.org --docker-username=u --docker-password=p").await;
    assert_eq!(shell.ok("get secret pull -o jsonpath={.type}").await.out, "kubernetes.io/dockerconfigjson");
    shell.ok("create serviceaccount robot").await;
    assert!(shell.ok("get sa").await.has_row(&["robot"]));
    shell.ok("create quota small --hard=pods=2,requests.memory=1Gi").await;
    assert_eq!(
        shell.ok("get quota small -o jsonpath={.spec.hard}").await.out,
        r#"{"pods":"2","requests.memory":"1Gi"}"#
    );
    let output = shell.run("create configmap settings --from-literal=size=small").await;
    assert!(output.err.contains("already exists"), "{output:?}");
    let output = shell.run("create configmap Settings --from-literal=size=small").await;
    assert!(!output.success && output.err.contains("Settings"), "{output:?}");
}

//! What is made of objects, and which are refused, as recorded from a Kubernetes.
//!
//! `stored/*.json` have objects as they are given and as they are stored, `refused.json` has what is wrong with others.
//! `RECORD=1` writes down what the cluster of `TEST_KUBECONFIG` answers; without it, answers have to be those.

use crate::cluster::Cluster;
use serde_json::{Value, json};
use std::env;
use std::fs;
use std::path::{Path, PathBuf};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance")
}

fn read(file: &Path) -> Value {
    serde_json::from_slice(&fs::read(file).unwrap()).unwrap()
}

/// Compares, or records when it is asked to.
fn hold(file: &Path, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    if env::var_os("RECORD").is_some() && env::var_os("TEST_KUBECONFIG").is_some() {
        fs::write(file, format!("{found:#}\n")).unwrap();
    } else {
        let name = file.file_stem().unwrap().to_string_lossy();
        differ(&name, expected, found, differences);
    }
}

async fn try_out(cluster: &Cluster, collection: &str, given: &Value) -> Result<Value, kube::core::Status> {
    let path = format!("{collection}?dryRun=All");
    cluster.send("POST", &path, "application/json", given).await
}

pub(crate) async fn defaults_and_admission_make_the_same(cluster: &Cluster) {
    let mut files: Vec<_> =
        fs::read_dir(folder().join("stored")).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() > 10, "{files:?}");
    let mut differences = Vec::new();
    for file in files {
        let expected = read(&file);
        let (collection, given) = (expected["collection"].as_str().unwrap(), &expected["given"]);
        let stored = match try_out(cluster, collection, given).await {
            Ok(stored) => without_chance(stored),
            Err(status) => panic!("{}: {status:?}", file.display()),
        };
        let found = json!({"collection": collection, "given": given, "stored": stored});
        hold(&file, &expected, &found, &mut differences);
    }
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

pub(crate) async fn the_same_is_wrong(cluster: &Cluster) {
    let file = folder().join("refused.json");
    let expected = read(&file);
    let mut found = Vec::new();
    for case in expected.as_array().unwrap() {
        let (collection, given) = (case["collection"].as_str().unwrap(), &case["given"]);
        let (code, causes) = match try_out(cluster, collection, given).await {
            Ok(_) => (201, Vec::new()),
            Err(status) => {
                let causes = status.details.map(|details| details.causes).unwrap_or_default();
                let mut causes: Vec<_> =
                    causes.into_iter().map(|cause| format!("{} {}", cause.reason, cause.field)).collect();
                causes.sort();
                causes.dedup();
                (status.code, causes)
            }
        };
        found.push(json!({"collection": collection, "given": given, "code": code, "causes": causes}));
    }
    let mut differences = Vec::new();
    hold(&file, &expected, &json!(found), &mut differences);
    assert!(differences.is_empty(), "\n{}", differences.join("\n"));
}

/// The object without what is different in every run, who wrote its fields, the finalizer of the controller that waits
/// for the pods of a claim, and what the controller of quotas has written meanwhile.
fn without_chance(mut object: Value) -> Value {
    let metadata = object["metadata"].as_object_mut().unwrap();
    for field in ["uid", "resourceVersion", "creationTimestamp", "managedFields", "namespace"] {
        metadata.remove(field);
    }
    if metadata.get("finalizers") == Some(&json!(["kubernetes.io/pvc-protection"])) {
        metadata.remove("finalizers");
    }
    if object["kind"] == "ResourceQuota" {
        object["status"] = json!({});
    }
    object
}

/// Notes the paths at which the values differ.
fn differ(path: &str, expected: &Value, found: &Value, differences: &mut Vec<String>) {
    match (expected, found) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                differ(&format!("{path}.{key}"), value, b.get(key).unwrap_or(&Value::Null), differences);
            }
            for (key, value) in b.iter().filter(|(key, _)| !a.contains_key(*key)) {
                differences.push(format!("{path}.{key}: {value} is too much"));
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (index, (a, b)) in a.iter().zip(b).enumerate() {
                differ(&format!("{path}[{index}]"), a, b, differences);
            }
        }
        (a, b) if a != b => differences.push(format!("{path}: {a} is expected, {b} was found")),
        _ => {}
    }
}

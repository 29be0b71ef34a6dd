//! Kinds made known by a `CustomResourceDefinition`.

use crate::cluster::{Cluster, eventually, object};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

/// A kind in a group that no other run uses. Returns the path of its objects, and the name of the definition.
async fn define(cluster: &Cluster) -> (String, String) {
    let group = format!("{}.example.com", cluster.namespace);
    let name = format!("boxes.{group}");
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "required": ["size"], "properties": {
            "size": {"type": "integer", "minimum": 1},
            "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"}}},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}}});
    let definition = json!({"metadata": {"name": name}, "spec": {
        "group": group, "scope": "Namespaced",
        "names": {"plural": "boxes", "singular": "box", "kind": "Box", "listKind": "BoxList", "shortNames": ["bx"]},
        "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema},
            "subresources": {"status": {}}}]}});
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    definitions.create(&PostParams::default(), &object(definition)).await.unwrap();
    eventually("the kind is established", async || {
        let definition = definitions.get(&name).await.unwrap();
        let conditions = definition.status.and_then(|status| status.conditions).unwrap_or_default();
        conditions.iter().any(|c| c.type_ == "Established" && c.status == "True")
    })
    .await;
    let path = format!("/apis/{group}/v1/namespaces/{}/boxes", cluster.namespace);
    eventually("the kind is served", async || {
        cluster.send("GET", &path, "application/json", &Value::Null).await.is_ok()
    })
    .await;
    (path, name)
}

fn boxed(path: &str, spec: &Value) -> Value {
    let group = path.split('/').nth(2).unwrap();
    json!({"apiVersion": format!("{group}/v1"), "kind": "Box", "metadata": {"name": "a"}, "spec": spec})
}

pub(crate) async fn a_definition_makes_a_kind(cluster: &Cluster) {
    let (path, name) = define(cluster).await;
    let made =
        cluster.send("POST", &path, "application/json", &boxed(&path, &json!({"size": 2}))).await.unwrap();
    assert_eq!(made["spec"], json!({"size": 2, "colour": "red"}), "the default is set");
    assert_eq!(made["metadata"]["generation"], 1);
    let one = format!("{path}/a");
    let merge = "application/merge-patch+json";
    let patched = cluster
        .send("PATCH", &one, merge, &json!({"spec": {"size": 3}, "status": {"phase": "x"}}))
        .await
        .unwrap();
    assert_eq!((&patched["metadata"]["generation"], patched.get("status")), (&json!(2), None));
    let status = json!({"spec": {"size": 9}, "status": {"phase": "Bound"}});
    let patched = cluster.send("PATCH", &format!("{one}/status"), merge, &status).await.unwrap();
    assert_eq!((&patched["spec"]["size"], &patched["status"]["phase"]), (&json!(3), &json!("Bound")));
    assert_eq!(patched["metadata"]["generation"], 2, "the status does not count");

    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
    eventually("the kind is gone", async || {
        let answer = cluster.send("GET", &path, "application/json", &Value::Null).await;
        answer.is_err_and(|status| status.code == 404)
    })
    .await;
}

pub(crate) async fn custom_objects_are_held_to_their_schema(cluster: &Cluster) {
    let (path, name) = define(cluster).await;
    for (spec, field) in [
        (json!({}), "spec.size"),
        (json!({"size": 0}), "spec.size"),
        (json!({"size": "big"}), "spec.size"),
        (json!({"size": 1, "colour": "green"}), "spec.colour"),
    ] {
        let status = cluster.send("POST", &path, "application/json", &boxed(&path, &spec)).await.unwrap_err();
        assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"), "{spec}");
        assert!(status.details.unwrap().causes.iter().any(|cause| cause.field == field), "{spec}");
    }
    let pruned = boxed(&path, &json!({"size": 1, "nosuch": true}));
    let made = cluster.send("POST", &path, "application/json", &pruned).await.unwrap();
    assert_eq!(made["spec"], json!({"size": 1, "colour": "red"}));
    let strategic = json!({"spec": {"size": 2}});
    let one = format!("{path}/a");
    let status =
        cluster.send("PATCH", &one, "application/strategic-merge-patch+json", &strategic).await.unwrap_err();
    assert_eq!(status.code, 415);
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client.clone());
    let patch = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
    definitions.patch(&name, &PatchParams::default(), &patch).await.unwrap();
    definitions.delete(&name, &DeleteParams::default()).await.unwrap();
}

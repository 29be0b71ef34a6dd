//! The tables in `tests/tables`, which the unit tests of several packages read, held against the API server.

use crate::cluster::Cluster;
use serde_json::{Value, json};

/// Creates the object without storing it. Returns the code of the answer.
async fn try_out(cluster: &Cluster, path: &str, object: &Value) -> u16 {
    let path = format!("{path}?dryRun=All");
    cluster.send("POST", &path, "application/json", object).await.map_or_else(|status| status.code, |_| 201)
}

pub(crate) async fn quantities_are_those_of_the_table(cluster: &Cluster) {
    let table: Vec<Value> = serde_json::from_str(include_str!("../tables/quantities.json")).unwrap();
    let mut wrong = Vec::new();
    for row in table {
        let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"limits.cpu": row["text"]}}});
        let code = try_out(cluster, "/api/v1/namespaces/{ns}/resourcequotas", &quota).await;
        let millis = row["millis"].to_string().trim_matches('"').parse::<i128>();
        let expected = match millis {
            Err(_) if row["stored"].is_null() => 400,
            Ok(..0) => 422,
            _ => 201,
        };
        if code != expected {
            wrong.push(format!("{row}: {code}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

pub(crate) async fn names_are_those_of_the_table(cluster: &Cluster) {
    let table: Value = serde_json::from_str(include_str!("../tables/names.json")).unwrap();
    let maps = "/api/v1/namespaces/{ns}/configmaps";
    let mut wrong = Vec::new();
    for (form, verdicts) in table.as_object().unwrap() {
        for (verdict, expected) in [("good", 201), ("bad", 422)] {
            for text in verdicts[verdict].as_array().unwrap() {
                let key = text.as_str().unwrap();
                let (path, metadata) = match form.as_str() {
                    "label" => ("/api/v1/namespaces", json!({"name": text})),
                    "subdomain" => (maps, json!({"name": text})),
                    "label value" => (maps, json!({"name": "a", "labels": {"x": text}})),
                    "qualified name" => (maps, json!({"name": "a", "labels": {key: "x"}})),
                    other => panic!("no case for the form {other:?}"),
                };
                let code = try_out(cluster, path, &json!({"metadata": metadata})).await;
                if code != expected {
                    wrong.push(format!("{form} {text}: {code}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

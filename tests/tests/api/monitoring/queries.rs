//! The queries of the dashboard and of the alerts, and the metrics and labels that they name.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::read;

/// A query, and its place.
pub(super) struct Query {
    /// The title of the panel, or the name of the alert.
    pub(super) of: String,
    pub(super) expression: String,
}

/// All queries of the dashboard. Grafana's variable for a range is replaced with `range`.
pub(super) fn of_dashboard(range: &str) -> Vec<Query> {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).unwrap();
    let mut queries = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            queries.push(Query {
                of: panel["title"].as_str().unwrap().to_owned(),
                expression: target["expr"].as_str().unwrap().replace("$__rate_interval", range),
            });
        }
    }
    assert!(queries.len() > 20, "the dashboard has panels");
    queries
}

/// The expressions of all alerts.
pub(super) fn of_alerts() -> Vec<Query> {
    let rules: Value = serde_saphyr::from_str(&read("alerts.yaml")).unwrap();
    let rules = rules["groups"][0]["rules"].as_array().unwrap();
    let text = |rule: &Value, key: &str| rule[key].as_str().unwrap().to_owned();
    rules.iter().map(|rule| Query { of: text(rule, "alert"), expression: text(rule, "expr") }).collect()
}

/// The metrics of the reference with their labels. A test of the service compares the reference with its registry.
fn reference() -> BTreeMap<String, BTreeSet<String>> {
    let mut metrics = BTreeMap::new();
    for row in read("README.md").lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let name = cells[1].trim_matches('`');
        if cells.len() < 6 || !is_ours(name) {
            continue;
        }
        // In a cell such as "`verb`: 7; `code`: `2xx`, `none`", each label begins an item.
        let labels = cells[3].split(';').filter_map(|item| item.split('`').nth(1)).map(str::to_owned);
        let mut labels: BTreeSet<String> = labels.collect();
        // Prometheus adds these, the last where it finds the service in a Kubernetes.
        labels.extend(["job", "instance", "namespace"].map(str::to_owned));
        if cells[2] == "histogram" {
            metrics.insert(format!("{name}_sum"), labels.clone());
            metrics.insert(format!("{name}_count"), labels.clone());
            labels.insert("le".to_owned());
            metrics.insert(format!("{name}_bucket"), labels);
        } else {
            metrics.insert(name.to_owned(), labels);
        }
    }
    metrics
}

fn is_ours(name: &str) -> bool {
    name.starts_with("wasmspawner_") || name.starts_with("process_")
}

/// The names of the labels in `a="x",b=~"y"`, or in `a, b`.
fn labels(text: &str) -> impl Iterator<Item = String> {
    let mut quoted = false;
    let outside: String = text
        .chars()
        .filter(|c| {
            quoted ^= *c == '"';
            !quoted
        })
        .collect();
    let names: Vec<String> = outside
        .split(',')
        .map(|item| item.split(['=', '!', '"']).next().unwrap_or_default().trim().to_owned())
        .filter(|name| !name.is_empty())
        .collect();
    names.into_iter()
}

/// The metrics and labels in a query that do not exist.
fn unknown(expression: &str, reference: &BTreeMap<String, BTreeSet<String>>) -> Vec<String> {
    let mut found = Vec::new();
    // `up` is Prometheus' own.
    let mut allowed: BTreeSet<String> = ["job", "instance", "namespace"].map(str::to_owned).into();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (at, _) in expression.match_indices(|c: char| c.is_ascii_alphabetic()) {
        if expression[..at].ends_with(word) {
            continue;
        }
        let name: String = expression[at..].chars().take_while(|c| word(*c)).collect();
        if !is_ours(&name) {
            continue;
        }
        let Some(known) = reference.get(&name) else {
            found.push(format!("the metric {name}"));
            continue;
        };
        allowed.extend(known.clone());
        if let Some(rest) = expression[at + name.len()..].strip_prefix('{') {
            let used = labels(rest.split_once('}').unwrap().0);
            found.extend(
                used.filter(|label| !known.contains(label)).map(|label| format!("{name}{{{label}}}")),
            );
        }
    }
    for clause in ["by (", "on ("] {
        for (at, _) in expression.match_indices(clause) {
            let inside = expression[at + clause.len()..].split_once(')').unwrap().0;
            found.extend(labels(inside).filter(|label| !allowed.contains(label)));
        }
    }
    found
}

#[test]
fn alerts_and_dashboard_name_only_metrics_and_labels_that_exist() {
    let reference = reference();
    let mut named = BTreeSet::new();
    for Query { of, expression } in of_dashboard("5m").into_iter().chain(of_alerts()) {
        assert_eq!(unknown(&expression, &reference), Vec::<String>::new(), "{of}: {expression}");
        named.extend(reference.keys().filter(|name| expression.contains(*name)).cloned());
    }
    assert!(named.len() > 25, "{named:?}");
}

#[test]
fn what_does_not_exist_is_found() {
    let reference = reference();
    for (query, expected) in [
        ("wasmspawner_spawn_total", "the metric wasmspawner_spawn_total"),
        (r#"rate(wasmspawner_spawns_total{outcome="a,b",user="x"}[5m])"#, "wasmspawner_spawns_total{user}"),
        ("sum by (outcome, reason) (wasmspawner_spawns_total)", "reason"),
    ] {
        assert_eq!(unknown(query, &reference), [expected], "{query}");
    }
}

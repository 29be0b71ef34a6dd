use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use wasmspawner_core::custom_resource::environment::World;
use wasmspawner_core::lifecycle::LabStatus;
use wasmspawner_core::lifecycle::stage::Stage;
use wasmspawner_core::names::spawn_key::ChildKind;

use super::*;

const REFERENCE: &str = include_str!("../../../../deploy/monitoring/README.md");

/// Returns metrics that have each been counted once.
fn used() -> Metrics {
    let metrics = Metrics::new();
    let moment = Duration::from_micros(30);
    metrics.spawn_ended(SpawnOutcome::Complete, Duration::from_secs(20), None);
    metrics.spawn_ended(SpawnOutcome::Failed(Blame::Cluster), Duration::from_secs(20), None);
    metrics.stage_left(Stage::Pulling, Duration::from_secs(3));
    metrics.kubernetes_request("patch", Some(409), moment);
    metrics.policy_called("rubin", "build-pod", "ok", moment);
    metrics.policy_compared("rubin", "build-pod", "different");
    metrics.http_request(
        &"BREW".parse().unwrap(),
        "/labs",
        StatusCode::METHOD_NOT_ALLOWED,
        moment,
        Some(0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c.into()),
    );
    metrics.set_labs(LabStatus::Running, 2);
    metrics.set_children(ChildKind::DaskPool, LabStatus::Running, 1);
    metrics.child_start_ended(ChildKind::Kernel, SpawnOutcome::Complete);
    metrics.set_workers(8, 7);
    metrics.set_environments(&World::default().count());
    metrics.set_watch_silence("pods", moment);
    metrics
}

/// Returns name, type and labels of all metrics in a text of the exposition format, without the labels that all samples
/// of a type have.
fn exported(text: &str) -> BTreeMap<String, (String, Vec<String>)> {
    let mut metrics = BTreeMap::new();
    let mut name = String::new();
    for line in text.lines() {
        if let Some(descriptor) = line.strip_prefix("# TYPE ") {
            let (named, kind) = descriptor.split_once(' ').unwrap();
            named.clone_into(&mut name);
            metrics.insert(name.clone(), (kind.to_owned(), Vec::new()));
        } else if !line.starts_with('#') {
            // Exemplars have braces, too.
            let sample = line.split(" # ").next().unwrap();
            let labels = sample.split_once('{').map_or("", |(_, rest)| rest.rsplit_once('}').unwrap().0);
            let mut names: Vec<String> = labels
                .split("\",")
                .filter_map(|label| label.split_once("=\"").map(|(name, _)| name.to_owned()))
                .filter(|label| label != "le")
                .collect();
            names.sort();
            metrics.get_mut(&name).unwrap().1 = names;
        }
    }
    metrics
}

/// Returns the rows of the tables in the reference: `| metric | type | labels | meaning |`.
fn documented() -> BTreeMap<String, (String, Vec<String>)> {
    let rows = REFERENCE
        .lines()
        .filter(|line| line.starts_with("| `wasmspawner_") || line.starts_with("| `process_"));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        // In a cell such as "`verb`: 7; `code`: `2xx`, `none`", the first name of each item is the label.
        let labels = cells[3].split(';').filter_map(|item| item.split('`').nth(1)).map(str::to_owned);
        let mut labels: Vec<String> = labels.collect();
        labels.sort();
        // The reference has the names that queries use: counters end in `_total` and infos in `_info`.
        let name = cells[1].trim_matches('`');
        let suffix = match cells[2] {
            "counter" => "_total",
            "info" => "_info",
            _ => "",
        };
        assert!(name.ends_with(suffix), "{name} does not end in {suffix}");
        (name.trim_end_matches(suffix).to_owned(), (cells[2].to_owned(), labels))
    })
    .collect()
}

#[test]
fn every_metric_is_documented_and_every_documented_metric_exists() {
    let text = used().encode().unwrap();
    assert_eq!(
        documented(),
        exported(&text),
        "deploy/monitoring/README.md differs from what is exported:\n{text}"
    );
    let source = [
        include_str!("mod.rs"),
        include_str!("environments.rs"),
        include_str!("prepulls.rs"),
        include_str!("reloads.rs"),
    ]
    .concat();
    let source: String = source.split_whitespace().collect();
    let registered: usize =
        ["register.plain(", "register.seconds("].iter().map(|call| source.matches(call).count()).sum();
    let ours = exported(&text).keys().filter(|name| name.starts_with("wasmspawner_")).count();
    assert_eq!(ours, registered + 1, "`used` counts each metric, and `build` is registered apart");
}

#[test]
fn samples_have_their_labels_and_values() {
    let metrics = used();
    let reader = metrics.sse_reader();
    let text = metrics.encode().unwrap();
    for line in [
        r#"wasmspawner_spawns_total{outcome="complete"} 1"#,
        r#"wasmspawner_spawns_total{outcome="cancelled"} 0"#,
        r#"wasmspawner_spawn_failures_total{blame="cluster"} 1"#,
        r#"wasmspawner_spawn_failures_total{blame="service"} 0"#,
        r#"wasmspawner_spawn_seconds_bucket{le="30.0",outcome="complete"} 1"#,
        r#"wasmspawner_stage_seconds_bucket{le="5.0",stage="Pulling"} 1"#,
        r#"wasmspawner_kubernetes_requests_total{verb="patch",code="4xx"} 1"#,
        r#"wasmspawner_policy_calls_total{policy="rubin",hook="build-pod",kind="ok"} 1"#,
        r#"wasmspawner_http_requests_total{method="other",route="/labs",status="405"} 1"#,
        r#"wasmspawner_http_request_seconds_bucket{le="0.001",method="other",route="/labs"} 1 # {trace_id="0af7651916cd43dd8448eb211c80319c"} 0.00003"#,
        r#"wasmspawner_labs{status="running"} 2"#,
        r#"wasmspawner_children{kind="dask_pool",status="running"} 1"#,
        r#"wasmspawner_dask_workers{state="ready"} 7"#,
        concat!(r#"wasmspawner_build_info{version=""#, env!("CARGO_PKG_VERSION"), r#""} 1"#),
        "process_resident_memory_bytes ",
        "process_cpu_seconds_total ",
        "wasmspawner_sse_readers 1",
        "# EOF",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
    drop(reader);
    assert!(metrics.encode().unwrap().contains("wasmspawner_sse_readers 0"));
}

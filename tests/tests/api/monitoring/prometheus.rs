//! A real Prometheus that scrapes the service.

use std::net::SocketAddr;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use wasmspawner_tests::api::Client;
use wasmspawner_tests::service::Service;
use wasmspawner_tests::waiting::until_some;

use super::queries::{Query, of_dashboard};
use super::{installed, path};
use crate::BINARY;

/// The panels without data, each with its reason.
const EMPTY: [(&str, &str); 2] = [
    (
        "Wait for a turn, nine of ten",
        "requests to the one-machine cluster, which is in the same process, do not wait for a turn",
    ),
    ("Time of a pull in advance, nine of ten", "nodes pull nothing in advance"),
];

/// A running Prometheus, which ends when this value is dropped.
struct Prometheus {
    process: Child,
    client: Client,
    _data: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Prometheus {
    /// Starts a Prometheus that scrapes the service every half second. Returns `None` if it is not installed.
    fn start(service: &Service) -> Option<Self> {
        let mut command = installed("prometheus")?;
        let data = tempfile::tempdir().unwrap();
        let config = json!({
            "global": { "scrape_interval": "500ms", "evaluation_interval": "1s" },
            "rule_files": [path("alerts.yaml").canonicalize().unwrap()],
            "scrape_configs": [{
                "job_name": "wasmspawner",
                "static_configs": [{ "targets": [service.health()] }],
            }],
        });
        let file = data.path().join("prometheus.yml");
        std::fs::write(&file, config.to_string()).unwrap();
        let address = SocketAddr::new(service.health().ip(), 9090);
        let process = command
            .arg(format!("--config.file={}", file.display()))
            .arg(format!("--storage.tsdb.path={}", data.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .arg("--enable-feature=exemplar-storage")
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(data.path().join("log")).unwrap())
            .spawn()
            .unwrap();
        Some(Self { process, client: Client::new(address), _data: data })
    }

    /// The series in the result of a query. `None` while Prometheus does not answer.
    async fn query(&self, expression: &str) -> Option<Vec<Value>> {
        let url = reqwest::Url::parse_with_params("http://prometheus/api/v1/query", [("query", expression)]);
        let target = format!("/api/v1/query?{}", url.unwrap().query().unwrap());
        let answer = self.client.get(&target).await.ok()?.json().ok()?;
        assert_eq!(answer["status"], "success", "{expression}: {answer}");
        answer["data"]["result"].as_array().cloned()
    }

    /// True if the query has a series with a number.
    async fn has_data(&self, expression: &str) -> bool {
        let series = self.query(expression).await.unwrap_or_default();
        series.iter().any(|series| series["value"][1].as_str().is_some_and(|value| value != "NaN"))
    }
}

#[tokio::test]
async fn a_prometheus_fills_every_panel_of_the_dashboard() {
    let service = Service::start(BINARY).await.unwrap();
    let Some(prometheus) = Prometheus::start(&service) else { return };
    let mut waiting = of_dashboard("1m");
    let known = |panel: &str| EMPTY.iter().any(|(title, _)| *title == panel);
    assert!(EMPTY.iter().all(|(title, _)| waiting.iter().any(|query| query.of == *title)));
    waiting.retain(|query| !known(&query.of));
    let admin = service.admin().unwrap();
    let mut round = 0;
    let everything = async {
        // A rate needs numbers that grow between scrapes, so labs start and fail until every panel shows data.
        while !waiting.is_empty() {
            round += 1;
            admin.spawn_to_end(&format!("ada{round}")).await.unwrap();
            admin.spawn_to_end(&format!("fault.pull-failure/servers/{round}")).await.unwrap();
            admin.stop_to_end(&format!("ada{round}")).await.unwrap();
            let mut still = Vec::new();
            for query in waiting.drain(..) {
                if !prometheus.has_data(&query.expression).await {
                    still.push(query);
                }
            }
            waiting = still;
        }
    };
    let filled = tokio::time::timeout(std::time::Duration::from_mins(5), everything).await.is_ok();
    let empty: Vec<_> =
        waiting.iter().map(|Query { of, expression }| format!("{of}: {expression}")).collect();
    assert!(filled, "these panels have no data:\n{}", empty.join("\n"));
    for query in of_dashboard("1m").into_iter().filter(|query| known(&query.of)) {
        assert!(!prometheus.has_data(&query.expression).await, "{} has data; take it off the list", query.of);
    }
    let rules = until_some(async || {
        let answer = prometheus.client.get("/api/v1/rules").await.ok()?.json().ok()?;
        let rules = answer["data"]["groups"][0]["rules"].as_array()?.clone();
        rules.iter().all(|rule| rule["health"] == "ok").then_some(rules)
    })
    .await;
    assert!(rules.len() > 10, "the alerts are loaded and can be evaluated");
}

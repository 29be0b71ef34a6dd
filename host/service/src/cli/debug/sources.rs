//! The sources of the parts of a bundle.

use std::net::IpAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use kube::config::{KubeConfigOptions, Kubeconfig};
use serde_json::{Value, json};
use wasmspawner_core::config::ConfigFile;
use wasmspawner_core::names::Username;

use super::BundleArgs;
use super::bundle::Part;
use super::redaction::{Redaction, configuration};
use crate::cli::config_args::ConfigArgs;
use crate::cli::labs::Service;

/// The maximum number of labs in the bundle, and of lines of the log.
const MAX_LABS: usize = 200;
const LAST_LINES: usize = 2000;
/// The time limit for reading the version of the cluster.
const CLUSTER: Duration = Duration::from_secs(5);

/// Collects the parts. A part that cannot be obtained is left out, with the reason.
pub(super) async fn collect(args: &BundleArgs) -> anyhow::Result<Vec<Part>> {
    let mut redaction = Redaction::default();
    let config = args.config.as_deref().map(read_config).transpose()?;
    let (labs, failures, policies) = match args.connection.open() {
        Ok(service) => {
            redaction.add(service.token());
            let labs = labs(&service, &mut redaction).await;
            let policies = service.read(&["policies"]).await.map_err(why);
            match labs {
                Ok((labs, failures)) => (Ok(labs), Ok(failures), policies),
                Err(reason) => (Err(reason.clone()), Err(reason), policies),
            }
        }
        Err(error) => (Err(why(error)), Err("see labs.json".to_owned()), Err("see labs.json".to_owned())),
    };
    let health = args.health_url.clone().or_else(|| config.as_ref().map(health_url));
    let text = |value: Result<Value, String>| value.and_then(|value| pretty(&value));
    let parts = vec![
        Part { name: "version.txt", content: Ok(version()) },
        Part {
            name: "configuration.json",
            content: match &config {
                Some(config) => {
                    serde_json::to_value(config).map_err(why).map(configuration).and_then(|v| pretty(&v))
                }
                None => Err("--config is not given".to_owned()),
            },
        },
        Part { name: "readyz.txt", content: probe(health.as_deref(), "/readyz").await },
        Part { name: "metrics.txt", content: probe(health.as_deref(), "/metrics").await },
        Part { name: "labs.json", content: text(labs) },
        Part { name: "failed-operations.json", content: text(failures) },
        Part { name: "policies.json", content: text(policies) },
        Part { name: "cluster-version.json", content: text(cluster(config.as_ref()).await) },
        Part { name: "service.log", content: args.log.as_deref().map_or_else(no_log, last_lines) },
    ];
    let clean = |part: Part| Part { content: part.content.map(|text| redaction.clean(&text)), ..part };
    let reasons = |part: Part| Part { content: part.content.map_err(|text| redaction.clean(&text)), ..part };
    Ok(parts.into_iter().map(clean).map(reasons).collect())
}

fn why(error: impl Into<anyhow::Error>) -> String {
    format!("{:#}", error.into())
}

fn pretty(value: &Value) -> Result<String, String> {
    serde_json::to_string_pretty(value).map_err(why)
}

fn version() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!(
        "wasmspawner {}\n{} {}\nmade {}\n",
        env!("CARGO_PKG_VERSION"),
        std::env::consts::ARCH,
        kernel.trim(),
        jiff::Timestamp::now()
    )
}

fn read_config(path: &Path) -> anyhow::Result<ConfigFile> {
    let args = ConfigArgs {
        config: Some(path.to_owned()),
        local: false,
        state_dir: None,
        listen: None,
        runtime: None,
    };
    args.file()
}

fn health_url(config: &ConfigFile) -> String {
    let mut address = config.http.health_listen;
    if address.ip().is_unspecified() {
        address.set_ip(IpAddr::from([127, 0, 0, 1]));
    }
    format!("http://{address}")
}

async fn probe(base: Option<&str>, path: &str) -> Result<String, String> {
    let base = base.ok_or("neither --health-url nor --config is given")?;
    let url = format!("{}{path}", base.trim_end_matches('/'));
    let plain = url.starts_with("http://");
    let answer = async {
        let answer = wasmspawner_outgoing::builder(plain, CLUSTER).build()?.get(url).send().await?;
        let status = answer.status();
        anyhow::Ok(format!("status {}\n{}", status.as_u16(), answer.text().await?))
    };
    answer.await.map_err(why)
}

/// Reads the labs, and their operations that have failed.
async fn labs(service: &Service, redaction: &mut Redaction) -> Result<(Value, Value), String> {
    let users = service.users(&["all".to_owned()]).await.map_err(why)?;
    let (mut labs, mut failures) = (Vec::new(), Vec::new());
    for user in users.iter().map(Username::as_str).take(MAX_LABS) {
        match service.read(&["labs", user]).await {
            Ok(lab) => labs.push(redaction.lab(&lab)),
            Err(error) => labs.push(json!({ "username": user, "not read": why(error) })),
        }
        let history = service.read(&["labs", user, "history"]).await.unwrap_or_default();
        let operations = history.as_array().cloned().unwrap_or_default();
        failures.extend(operations.into_iter().filter(|operation| operation["outcome"] == "failed"));
    }
    Ok((json!({ "users_with_labs": users.len(), "labs": labs }), failures.into()))
}

/// Reads the version of the Kubernetes API server, as this machine reaches it.
async fn cluster(config: Option<&ConfigFile>) -> Result<Value, String> {
    let config = config.ok_or("--config is not given")?;
    let asked = async {
        let embedded = config.embedded.as_ref().and(config.state_dir.as_ref());
        let kubeconfig = embedded.map(|state| state.join("kubeconfig"));
        let kubeconfig = kubeconfig.or_else(|| config.kubernetes.kubeconfig.clone());
        let options =
            KubeConfigOptions { context: config.kubernetes.context.clone(), ..KubeConfigOptions::default() };
        let client = match kubeconfig {
            Some(path) => {
                kube::Config::from_custom_kubeconfig(Kubeconfig::read_from(path)?, &options).await?
            }
            None => kube::Config::infer().await?,
        };
        let info = kube::Client::try_from(client)?.apiserver_version().await?;
        anyhow::Ok(json!({ "git_version": info.git_version, "platform": info.platform }))
    };
    let answer = tokio::time::timeout(CLUSTER, asked).await;
    answer.context("the cluster does not answer").flatten().map_err(why)
}

fn no_log() -> Result<String, String> {
    Err("--log is not given; add the output of `kubectl logs`".to_owned())
}

fn last_lines(path: &Path) -> Result<String, String> {
    let bytes = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(LAST_LINES)..].join("\n"))
}

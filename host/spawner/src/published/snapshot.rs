//! The state of a lab, as the API shows it.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use wasmspawner_core::config::{Config, RouteFields};
use wasmspawner_core::lifecycle::stage::{ObservedPod, Stage};
use wasmspawner_core::lifecycle::{LabStatus, PodPresence};
use wasmspawner_core::manifest::service_name;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::policy::Options;
use wasmspawner_core::record::{LabDescription, Place};

use crate::context::lab_routes::lab_routes;

/// The state of a lab at one moment. Credentials in `env` are already redacted.
#[derive(Debug, Clone, PartialEq)]
pub struct LabSnapshot {
    /// The user and the server.
    pub key: SpawnKey,
    /// The status: starting, running, terminating or failed.
    pub status: LabStatus,
    /// The presence of the lab's pod.
    pub pod: PodPresence,
    /// The details with which the lab was started.
    pub about: Arc<LabDetails>,
    /// The address of the pod, once it has one.
    pub address: Option<String>,
    /// The URL at which the Hub reaches the lab, once it has an address.
    pub url: Option<String>,
    /// The stage of the pod.
    pub stage: Option<Stage>,
    /// The reason for the stage or the failure, for programs.
    pub reason: Option<String>,
    /// The reason for the stage or the failure, for people.
    pub message: Option<String>,
    /// The progress of the operation, from 0 to 100.
    pub progress: u8,
    /// The id of the operation under way, or of the last one.
    pub job_id: Option<JobId>,
    /// The number of container restarts since the lab became ready.
    pub restarts: u32,
    /// The exit code of the lab's program, if the lab failed because that ended.
    pub exit_code: Option<i32>,
}

/// The details with which a lab was started.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LabDetails {
    /// The description in the lab's record.
    pub description: Arc<LabDescription>,
    /// The environment variables; credentials are redacted.
    pub env: BTreeMap<String, String>,
    /// The time at which the spawn began.
    pub started_at: Option<Timestamp>,
}

impl LabDetails {
    /// Returns the details without the user's request.
    pub(crate) fn without_request(&self) -> Self {
        let description = LabDescription {
            options: Options::default(),
            decided_by: BTreeMap::new(),
            hidden_env: BTreeMap::new(),
            ..LabDescription::clone(&self.description)
        };
        Self { description: Arc::new(description), env: BTreeMap::new(), started_at: self.started_at }
    }

    /// Returns the details with the present number of workers of a Dask pool. The pool may have been scaled while
    /// policies decided.
    pub(crate) fn with_workers_of(self: &Arc<Self>, now: &Self) -> Arc<Self> {
        let (Some(pool), Some(now)) = (&self.description.pool, &now.description.pool) else {
            return Arc::clone(self);
        };
        let mut pool = pool.clone();
        pool.take_workers_of(now);
        let description = LabDescription { pool: Some(pool), ..LabDescription::clone(&self.description) };
        Arc::new(Self { description: Arc::new(description), ..Self::clone(self) })
    }
}

/// The URL at which the Hub reaches the lab in this pod, once it has an address; `prefix` is the path of the lab's URL.
pub(crate) fn url(pod: &ObservedPod, place: &Place, prefix: &str, config: &Config) -> Option<String> {
    let ip = pod.ip.as_deref()?;
    let port = pod.port.unwrap_or(config.lab.section.port);
    if let Some(template) = template(place, config) {
        let (name, namespace) = (service_name(&place.pod), place.namespace.as_str());
        let url = RouteFields { name: name.as_str(), namespace, prefix, port }.fill(template);
        return Some(if place.entrance.has_service() { with_scheme_of(place, url, config) } else { url });
    }
    let host = if ip.contains(':') { format!("[{ip}]") } else { ip.to_owned() };
    Some(format!("http://{host}:{port}"))
}

/// Sets the scheme in the URL of a lab with a Service. The certificate with which the lab was started decides whether
/// the lab is reached over TLS, regardless of the present configuration.
fn with_scheme_of(place: &Place, url: String, config: &Config) -> String {
    let service = config.lab.section.service.as_ref();
    let others_have_one = service.is_some_and(|service| service.certificate.is_some());
    match (url.split_once("://"), place.entrance.certificate()) {
        (Some((_, rest)), Some(_)) => format!("https://{rest}"),
        (Some((_, rest)), None) if others_have_one => format!("http://{rest}"),
        _ => url,
    }
}

/// The template of the URL of labs at this place; `None` where the Hub reaches them at the addresses of their pods.
fn template<'a>(place: &Place, config: &'a Config) -> Option<&'a str> {
    if place.entrance.has_service() {
        return config.lab.section.service.as_ref()?.lab_url.as_deref();
    }
    Some(lab_routes(config, place.kind.cluster())?.lab_url.as_str())
}

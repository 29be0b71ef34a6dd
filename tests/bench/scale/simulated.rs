//! A simulated API server with any number of running labs. Lists are generated while they are read.
//!
//! The objects are copies of those of one lab that the service started on the one-machine cluster. They never change.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context as _;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use futures::stream;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Pod};
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use wasmspawner_tests::service::Service;

use crate::{site, spawns};

/// The user whose lab's objects are copied.
const MODEL: &str = "modeluser";

/// The objects of one lab as text, in which the names and uids of other labs are inserted.
#[derive(Clone)]
pub(crate) struct Templates {
    spawn: Template,
    pod: Template,
    namespace: Template,
    environment: Template,
}

#[derive(Clone)]
struct Template {
    kind: &'static str,
    api_version: &'static str,
    text: String,
    /// The uids in the text. Each copy has others.
    uids: Vec<String>,
}

/// A running simulated API server; it ends when this value is dropped.
pub(crate) struct SimulatedCluster {
    address: SocketAddr,
    contents: Arc<Contents>,
    serving: JoinHandle<()>,
}

struct Contents {
    labs: usize,
    templates: Templates,
    last_page: Mutex<Instant>,
}

impl Templates {
    /// Starts one lab, and reads its objects.
    pub(crate) async fn of_a_lab() -> anyhow::Result<Self> {
        let service = site::one_machine(site::ordinary()).await?;
        spawns::start(service.admin()?, MODEL.to_owned()).await?;
        let spawn = GroupVersionKind::gvk("wasmspawner.io", "v1alpha1", "Spawn");
        let spawn = ApiResource::from_gvk(&spawn);
        // The record says that the lab is ready a moment after the event does.
        let mut again = tokio::time::interval(Duration::from_millis(50));
        while one(&service, &spawn, "").await?.pointer("/status/readyAt").is_none() {
            again.tick().await;
        }
        let spawn = one(&service, &spawn, "").await?;
        let pod = one(&service, &ApiResource::erase::<Pod>(&()), "wasmspawner.io/user").await?;
        let namespace = one(&service, &ApiResource::erase::<Namespace>(&()), "wasmspawner.io/user").await?;
        let environment =
            one(&service, &ApiResource::erase::<ConfigMap>(&()), "app.kubernetes.io/component=environment")
                .await?;
        let uid = |object: &Value, path: &str| -> anyhow::Result<String> {
            Ok(object.pointer(path).and_then(Value::as_str).context("no uid")?.to_owned())
        };
        // The record's uid comes first, because all other objects contain it.
        let uids = vec![
            uid(&spawn, "/metadata/uid")?,
            uid(&pod, "/metadata/uid")?,
            uid(&namespace, "/metadata/uid")?,
            uid(&spawn, "/spec/operation/id")?,
        ];
        let template = |kind, api_version, object: &Value| Template {
            kind,
            api_version,
            text: object.to_string(),
            uids: uids.clone(),
        };
        Ok(Self {
            spawn: template("Spawn", "wasmspawner.io/v1alpha1", &spawn),
            pod: template("Pod", "v1", &pod),
            namespace: template("Namespace", "v1", &namespace),
            environment: template("ConfigMap", "v1", &environment),
        })
    }
}

async fn one(service: &Service, kind: &ApiResource, selector: &str) -> anyhow::Result<Value> {
    let api: Api<DynamicObject> = Api::all_with(service.cluster().await?, kind);
    let mut found = api.list(&ListParams::default().labels(selector)).await?.items;
    anyhow::ensure!(found.len() == 1, "{} objects of kind {}", found.len(), kind.kind);
    Ok(serde_json::to_value(found.pop())?)
}

impl Template {
    /// The object of the lab with this number.
    fn copy(&self, number: usize) -> String {
        let mut text = self.text.replace(MODEL, &format!("user{number:06}"));
        for (index, uid) in self.uids.iter().enumerate() {
            text = text.replace(uid, &format!("{number:08x}-0000-7000-8000-{index:012x}"));
        }
        text
    }
}

impl SimulatedCluster {
    pub(crate) async fn start(templates: Templates, labs: usize) -> anyhow::Result<Self> {
        let contents = Arc::new(Contents { labs, templates, last_page: Mutex::new(Instant::now()) });
        let app = axum::Router::new().fallback(answer).with_state(Arc::clone(&contents));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let serving = tokio::spawn(async move {
            if let Err(error) = axum::serve(listener, app).await {
                println!("the simulated API server has ended: {error}");
            }
        });
        Ok(Self { address, contents, serving })
    }

    pub(crate) fn kubeconfig(&self) -> String {
        json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{ "name": "simulated", "cluster": { "server": format!("http://{}", self.address) } }],
            "users": [{ "name": "admin", "user": {} }],
            "contexts": [{ "name": "simulated", "context": { "cluster": "simulated", "user": "admin" } }],
            "current-context": "simulated",
        })
        .to_string()
    }

    /// The time at which the last page of a list of labs' objects was sent.
    pub(crate) fn last_page(&self) -> Instant {
        *self.contents.last_page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for SimulatedCluster {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(contents): State<Arc<Contents>>, uri: Uri) -> Response {
    let query = uri.query().unwrap_or_default();
    let parameter = |name: &str| {
        query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name).map(|(_, v)| v)
    };
    if parameter("watch") == Some("true") {
        let seconds = parameter("timeoutSeconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(60);
        return silent(Duration::from_secs(seconds));
    }
    let templates = &contents.templates;
    let template = match uri.path() {
        "/api/v1/pods" => Some(&templates.pod),
        "/api/v1/namespaces" => Some(&templates.namespace),
        "/api/v1/configmaps" => Some(&templates.environment),
        path if path.ends_with("/spawns") => Some(&templates.spawn),
        _ => None,
    };
    let limit = parameter("limit").and_then(|limit| limit.parse().ok()).unwrap_or(usize::MAX);
    let from: usize = parameter("continue").and_then(|from| from.parse().ok()).unwrap_or(0);
    let Some(template) = template else {
        return json_answer(
            r#"{"kind":"List","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}"#.to_owned(),
        );
    };
    let until = from.saturating_add(limit).min(contents.labs);
    let items: Vec<String> = (from..until).map(|number| template.copy(number)).collect();
    let next = if until < contents.labs { until.to_string() } else { String::new() };
    let text = format!(
        r#"{{"kind":"{}List","apiVersion":"{}","metadata":{{"resourceVersion":"1","continue":"{next}"}},"items":[{}]}}"#,
        template.kind,
        template.api_version,
        items.join(",")
    );
    *contents.last_page.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    json_answer(text)
}

fn json_answer(text: String) -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], text).into_response()
}

/// A watch without any events.
fn silent(lasts: Duration) -> Response {
    let nothing = stream::once(async move {
        tokio::time::sleep(lasts).await;
        Ok::<_, std::convert::Infallible>("")
    });
    ([(header::CONTENT_TYPE, "application/json")], Body::from_stream(nothing)).into_response()
}

//! A registry with artifacts that cosign has signed, controlled by a test.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use serde::Deserialize;
use tokio::net::TcpListener;
use wasmspawner_core::config::{PublicKeySource, RegistriesConfig};
use wasmspawner_core::values::digest::Digest;
use wasmspawner_policies::{
    ComponentSource, EngineOptions, FailedPolicies, LoadErrorKind, Policies, PolicySpec,
};
use wasmspawner_registry::Artifacts;

use crate::{options, published};

pub(crate) const COMPONENT: &[u8] = include_bytes!("../../guests/published-0.1.0/policy.wasm");

#[derive(Deserialize)]
pub(crate) struct Tables {
    pub(crate) keys: BTreeMap<String, String>,
    pub(crate) artifact: Digest,
    pub(crate) registry: BTreeMap<String, Stored>,
    pub(crate) file: BTreeMap<String, String>,
}

pub(crate) fn tables() -> Tables {
    serde_json::from_str(include_str!("../../tables/signatures.json")).unwrap()
}

/// The content of a registry.
#[derive(Clone, Default, Deserialize)]
pub(crate) struct Stored {
    pub(crate) manifests: BTreeMap<String, String>,
    pub(crate) files: BTreeMap<String, String>,
    /// The registry's answer to a request for referrers. A registry without this API answers 404.
    #[serde(default)]
    pub(crate) referrers: Option<String>,
}

impl Stored {
    /// Adds a manifest under a name and its digest.
    pub(crate) fn add(&mut self, name: &str, manifest: &str) -> Digest {
        let digest = Digest::sha256(manifest.as_bytes());
        self.manifests.insert(digest.to_string(), manifest.to_owned());
        self.manifests.insert(name.to_owned(), manifest.to_owned());
        digest
    }

    /// The only file of this type that belongs to a manifest.
    pub(crate) fn file(&mut self, part: &str) -> &mut String {
        self.files.values_mut().find(|file| file.contains(part)).unwrap()
    }
}

/// A registry that follows a test's instructions, and counts the requests.
#[derive(Clone, Default)]
pub(crate) struct Registry {
    pub(crate) stored: Arc<Mutex<Stored>>,
    pub(crate) asked: Arc<Mutex<Vec<String>>>,
}

pub(crate) async fn answer(State(registry): State<Registry>, request: Request) -> Response {
    let path = request.uri().path().to_owned();
    registry.asked.lock().unwrap().push(path.clone());
    let stored = registry.stored.lock().unwrap();
    let name = path.rsplit('/').next().unwrap();
    let found = match path.rsplit('/').nth(1) {
        Some("manifests") => stored.manifests.get(name).cloned().map(String::into_bytes),
        Some("referrers") => stored.referrers.clone().map(String::into_bytes),
        Some("blobs") if name == Digest::sha256(COMPONENT).to_string() => Some(COMPONENT.to_vec()),
        Some("blobs") => stored.files.get(name).cloned().map(String::into_bytes),
        _ => None,
    };
    found.map_or_else(|| StatusCode::NOT_FOUND.into_response(), IntoResponse::into_response)
}

/// A site with such a registry.
pub(crate) struct Site {
    pub(crate) registry: Registry,
    pub(crate) address: String,
    pub(crate) server: tokio::task::JoinHandle<()>,
    pub(crate) state: tempfile::TempDir,
}

impl Site {
    pub(crate) async fn with(stored: Stored) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let registry = Registry { stored: Arc::new(Mutex::new(stored)), ..Registry::default() };
        let router = Router::new().fallback(answer).with_state(registry.clone());
        let server = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self { registry, address, server, state: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn policy(&self, name: &str, keys: &[&str]) -> PolicySpec {
        let reference = format!("{}/site/policy{name}", self.address).parse().unwrap();
        let source = ComponentSource::Registry(Box::new(reference));
        let keys = keys.iter().map(|key| PublicKeySource::Pem(tables().keys[*key].clone())).collect();
        PolicySpec { source, signed_by: Some(keys), ..published::spec() }
    }

    pub(crate) fn options(&self) -> EngineOptions {
        let config =
            RegistriesConfig { plain_http: vec![self.address.clone()], ..RegistriesConfig::default() };
        let (artifacts, cache) = (Artifacts::new(config), Some(self.state.path().join("cache")));
        EngineOptions { artifacts, cache, ..options() }
    }

    pub(crate) async fn load(&self, name: &str, keys: &[&str]) -> Result<Policies, LoadErrorKind> {
        match Policies::load(vec![self.policy(name, keys)], self.options()).await {
            Ok(policies) => Ok(policies),
            Err(FailedPolicies::Load(error)) => Err(error.kind),
            Err(other) => panic!("{other}"),
        }
    }

    pub(crate) async fn refusal(&self, keys: &[&str]) -> String {
        match self.load(":1", keys).await {
            Err(error @ LoadErrorKind::NotSigned(_)) => error.to_string(),
            Err(other) => panic!("{other}"),
            Ok(_) => panic!("it was loaded"),
        }
    }

    pub(crate) fn change(&self, change: impl FnOnce(&mut Stored)) {
        change(&mut self.registry.stored.lock().unwrap());
    }

    pub(crate) fn asked(&self) -> usize {
        std::mem::take(&mut *self.registry.asked.lock().unwrap()).len()
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.server.abort();
    }
}

pub(crate) fn state(name: &str) -> Stored {
    tables().registry.remove(name).unwrap()
}

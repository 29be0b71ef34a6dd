use std::time::Duration;

use anyhow::{Context, anyhow};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::{Map, Value, json};
use tokio_rustls::rustls::crypto::ring;
use wasmspawner_core::names::Username;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::spawn_key::{ChildKind, SpawnKey};
use wasmspawner_core::policy::user_string::UserString;

use super::refusal::Refusal;

/// The time limit for an answer of the service. It answers a spawn only after it has asked the policies.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit for loading all policies again. A large policy takes a minute to compile.
const RELOAD: Duration = Duration::from_mins(3);

/// The API of a running service.
pub(in crate::cli) struct Service {
    http: reqwest::Client,
    base: Url,
    token: String,
}

impl Service {
    pub(super) fn new(base: Url, token: String) -> anyhow::Result<Self> {
        // The process has one cryptography provider. If one is installed already, this call fails and that one is used.
        let _ = ring::default_provider().install_default();
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none());
        // A machine without certificate authorities can still reach a service over plain HTTP.
        let http = if base.scheme() == "http" { http.tls_certs_only([]) } else { http };
        Ok(Self { http: http.build().context("cannot create an HTTP client for the service")?, base, token })
    }

    /// Returns the credential, so that it can be removed from printed texts.
    pub(in crate::cli) fn token(&self) -> &str {
        &self.token
    }

    /// Reads from the service. `path` has one part per segment.
    pub(in crate::cli) async fn read(&self, path: &[&str]) -> anyhow::Result<Value> {
        Ok(self.send(self.request(Method::GET, self.url(path))).await?.json().await?)
    }

    /// Lists the users with a lab in one of these states.
    pub(in crate::cli) async fn users(&self, statuses: &[String]) -> anyhow::Result<Vec<Username>> {
        let query: Vec<_> = statuses.iter().map(|status| ("status", status.as_str())).collect();
        let mut url = self.url(&["labs"]);
        url.query_pairs_mut().extend_pairs(query);
        Ok(self.send(self.request(Method::GET, url)).await?.json().await?)
    }

    /// Reads a lab, kernel or pool.
    pub(super) async fn lab(&self, key: &SpawnKey) -> anyhow::Result<Value> {
        Ok(self.send(self.request(Method::GET, self.url_of(key, &[]))).await?.json().await?)
    }

    pub(super) async fn lab_if_any(&self, lab: &SpawnKey) -> anyhow::Result<Option<Value>> {
        match self.lab(lab).await {
            Ok(lab) => Ok(Some(lab)),
            Err(error) if refused_with(&error, StatusCode::NOT_FOUND) => Ok(None),
            Err(error) => Err(error),
        }
    }

    pub(super) async fn spawn(&self, asked: &UserString, options: &Map<String, Value>) -> anyhow::Result<()> {
        let request = self.request(Method::POST, self.lab_url(&asked.lab(), &["spawn"]));
        let user_string = (!asked.wanted.is_nothing()).then(|| asked.to_string());
        self.send(request.json(&json!({ "options": options, "user_string": user_string }))).await.map(drop)
    }

    /// Stops a lab, kernel or pool.
    pub(super) async fn stop(&self, key: &SpawnKey) -> anyhow::Result<()> {
        self.send(self.request(Method::DELETE, self.url_of(key, &[]))).await.map(drop)
    }

    /// Reads the end of a lab's log.
    pub(super) async fn logs(&self, lab: &LabKey, query: &[(&str, String)]) -> anyhow::Result<Value> {
        let mut url = self.lab_url(lab, &["logs"]);
        url.query_pairs_mut().extend_pairs(query);
        Ok(self.send(self.request(Method::GET, url)).await?.json().await?)
    }

    pub(super) async fn volumes(&self, lab: &LabKey) -> anyhow::Result<Value> {
        Ok(self.send(self.request(Method::GET, self.lab_url(lab, &["volumes"]))).await?.json().await?)
    }

    pub(super) async fn release_volumes(&self, lab: &LabKey) -> anyhow::Result<Value> {
        Ok(self.send(self.request(Method::DELETE, self.lab_url(lab, &["volumes"]))).await?.json().await?)
    }

    /// Lists the objects that belong to no lab. With `delete`, the service deletes them.
    pub(super) async fn orphans(&self, delete: bool) -> anyhow::Result<Value> {
        let method = if delete { Method::DELETE } else { Method::GET };
        Ok(self.send(self.request(method, self.url(&["orphans"]))).await?.json().await?)
    }

    /// Makes the service load its policies again, and returns the loaded policies.
    pub(in crate::cli) async fn reload_policies(&self) -> anyhow::Result<Value> {
        let request = self.request(Method::POST, self.url(&["policies", "reload"])).timeout(RELOAD);
        Ok(self.send(request).await?.json().await?)
    }

    /// Lists all environments, claims and targets.
    pub(in crate::cli) async fn environments(&self) -> anyhow::Result<Value> {
        Ok(self.send(self.request(Method::GET, self.url(&["environments"]))).await?.json().await?)
    }

    /// Frees a released target.
    pub(in crate::cli) async fn release_target(&self, name: &str) -> anyhow::Result<()> {
        let url = self.url(&["environments", "targets", name, "release"]);
        self.send(self.request(Method::POST, url)).await.map(drop)
    }

    /// Removes a target.
    pub(in crate::cli) async fn retire_target(&self, name: &str) -> anyhow::Result<()> {
        let url = self.url(&["environments", "targets", name]);
        self.send(self.request(Method::DELETE, url)).await.map(drop)
    }

    /// Opens the event stream of a lab, kernel or pool, from the event after `last_seen`. The stream ends when the
    /// operation does.
    pub(super) async fn events(&self, key: &SpawnKey, last_seen: Option<&str>) -> anyhow::Result<Response> {
        let url = self.url_of(key, &["events"]);
        let mut request = self.http.get(url).bearer_auth(&self.token);
        if let Some(id) = last_seen {
            request = request.header("last-event-id", id);
        }
        self.send(request).await
    }

    fn url_of(&self, key: &SpawnKey, rest: &[&str]) -> Url {
        let Some(child) = &key.child else { return self.lab_url(&key.lab, rest) };
        let folder = match child.kind {
            ChildKind::Kernel => "kernels",
            ChildKind::DaskPool => "dask-pools",
        };
        self.lab_url(&key.lab, &[&[folder, child.name.as_str()], rest].concat())
    }

    fn lab_url(&self, lab: &LabKey, rest: &[&str]) -> Url {
        let mut path = vec!["labs", lab.user.as_str()];
        if !lab.server.is_default() {
            path.extend(["servers", lab.server.as_str()]);
        }
        path.extend(rest);
        self.url(&path)
    }

    fn url(&self, path: &[&str]) -> Url {
        let mut url = self.base.clone();
        // An `http` URL always has a path.
        if let Ok(mut segments) = url.path_segments_mut() {
            segments.pop_if_empty().extend(path);
        }
        url
    }

    fn request(&self, method: Method, url: Url) -> RequestBuilder {
        // The header is for ingresses that authenticate by cookie.
        let request = self.http.request(method, url).header("x-requested-with", "wasmspawner");
        request.bearer_auth(&self.token).timeout(TIMEOUT)
    }

    async fn send(&self, request: RequestBuilder) -> anyhow::Result<Response> {
        let response =
            request.send().await.map_err(|error| anyhow!("{}", root_cause(&error))).with_context(|| {
                format!("the service at {} cannot be asked; does it run there?", self.base)
            })?;
        let status = response.status();
        if status.is_client_error() || status.is_server_error() {
            return Err(Refusal::read(status, &response.bytes().await?).into());
        }
        Ok(response)
    }
}

/// Returns the innermost cause, which says what happened. The errors around it only say that the request failed.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}

pub(super) fn refused_with(error: &anyhow::Error, status: StatusCode) -> bool {
    error.downcast_ref::<Refusal>().is_some_and(|refusal| refusal.status == status)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmspawner_core::names::ServerName;

    #[test]
    fn names_are_encoded_in_paths() {
        for (base, user, server, expected) in [
            ("http://h:1/spawner/v1", "ada", "", "http://h:1/spawner/v1/labs/ada/events"),
            ("http://h:1/", "a b?#%", "", "http://h:1/labs/a%20b%3F%23%25/events"),
            ("http://h/x/", "é", "gpu 1", "http://h/x/labs/%C3%A9/servers/gpu%201/events"),
        ] {
            let service = Service::new(Url::parse(base).unwrap(), String::new()).unwrap();
            let lab = LabKey::new(Username::parse(user).unwrap(), ServerName::parse(server).unwrap());
            assert_eq!(service.lab_url(&lab, &["events"]).as_str(), expected);
        }
    }
}

//! A client of the REST API that returns every answer unchanged.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context as _;
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::events::Events;

/// The path prefix of the API.
pub const PREFIX: &str = "/spawner/v1";

/// Time limit of requests and events that a test waits for.
const TIMEOUT: Duration = Duration::from_mins(1);

/// A caller of the service.
#[derive(Clone)]
pub struct Client {
    http: reqwest::Client,
    base: String,
    token: Option<String>,
}

/// An answer of the service.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as text.
    pub body: String,
}

impl Client {
    /// A client for the service at this address, without a token.
    pub fn new(address: SocketAddr) -> Self {
        // Rustls has one provider of cryptography per process; a second installation returns an error that does not
        // matter.
        let _ = tokio_rustls::rustls::crypto::ring::default_provider().install_default();
        // The builder fails only if TLS cannot be set up. Redirects are not followed, so that tests see a 303.
        let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build();
        Self { http: client.unwrap_or_default(), base: format!("http://{address}"), token: None }
    }

    /// The same client with a token.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        self.token = Some(token.to_owned());
        self
    }

    /// The token that the client sends.
    pub fn token(&self) -> Option<&str> {
        self.token.as_deref()
    }

    /// Requests `GET path`; `path` is the complete path.
    pub async fn get(&self, path: &str) -> anyhow::Result<Answer> {
        self.send(self.request(Method::GET, path)).await
    }

    /// Reads a lab: `ada`, or `ada/servers/x` for a named server.
    pub async fn lab(&self, lab: &str) -> anyhow::Result<Answer> {
        self.get(&format!("{PREFIX}/labs/{lab}")).await
    }

    /// Starts a lab with an empty body.
    pub async fn spawn(&self, lab: &str) -> anyhow::Result<Answer> {
        self.spawn_with(lab, &json!({})).await
    }

    /// Starts a lab.
    pub async fn spawn_with(&self, lab: &str, body: &Value) -> anyhow::Result<Answer> {
        self.send(self.request(Method::POST, &format!("{PREFIX}/labs/{lab}/spawn")).json(body)).await
    }

    /// Stops a lab.
    pub async fn stop(&self, lab: &str) -> anyhow::Result<Answer> {
        self.send(self.request(Method::DELETE, &format!("{PREFIX}/labs/{lab}"))).await
    }

    /// Follows a lab's events from the beginning.
    pub async fn events(&self, lab: &str) -> anyhow::Result<Events> {
        self.events_after(lab, None).await
    }

    /// Follows a lab's events after the one last seen.
    pub async fn events_after(&self, lab: &str, last_seen: Option<&str>) -> anyhow::Result<Events> {
        let mut request = self.request(Method::GET, &format!("{PREFIX}/labs/{lab}/events"));
        if let Some(id) = last_seen {
            request = request.header("Last-Event-ID", id);
        }
        Ok(Events::from_response(request.send().await?.error_for_status()?))
    }

    /// Starts a lab and waits until the operation ends. Returns its events.
    pub async fn spawn_to_end(&self, lab: &str) -> anyhow::Result<Vec<crate::events::Event>> {
        let answer = self.spawn(lab).await?;
        anyhow::ensure!(answer.status == 303, "the spawn was refused: {answer:?}");
        self.events(lab).await?.to_end().await
    }

    /// Stops a lab and waits until the operation ends. Returns its events.
    pub async fn stop_to_end(&self, lab: &str) -> anyhow::Result<Vec<crate::events::Event>> {
        let answer = self.stop(lab).await?;
        anyhow::ensure!(answer.status == 202, "the stop was refused: {answer:?}");
        self.events(lab).await?.to_end().await
    }

    /// Waits for the operation after the one of `events`, and for its end. Returns its events.
    pub async fn next_operation(
        &self,
        lab: &str,
        events: &[crate::events::Event],
    ) -> anyhow::Result<Vec<crate::events::Event>> {
        let job = |events: &[crate::events::Event]| {
            events.first().and_then(|event| event.id.rsplit_once('-')).map(|(job, _)| job.to_owned())
        };
        let mut again = tokio::time::interval(Duration::from_millis(50));
        let next = async {
            loop {
                again.tick().await;
                let now = self.events(lab).await?.to_end().await?;
                if job(&now) != job(events) {
                    return anyhow::Ok(now);
                }
            }
        };
        tokio::time::timeout(TIMEOUT, next).await.context("no other operation has begun")?
    }

    /// Sends the head of a request unchanged, with the token. Returns all bytes until the connection closes.
    pub async fn raw(&self, head: &str) -> anyhow::Result<String> {
        let address = self.base.trim_start_matches("http://");
        let token =
            self.token.as_ref().map(|token| format!("\r\nAuthorization: Bearer {token}")).unwrap_or_default();
        let mut connection = TcpStream::connect(address).await?;
        connection.write_all(format!("{head}{token}\r\nConnection: close\r\n\r\n").as_bytes()).await?;
        let mut answer = Vec::new();
        connection.read_to_end(&mut answer).await?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    /// Builds a request; `path` is the complete path.
    pub fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(method, format!("{}{path}", self.base));
        match &self.token {
            Some(token) => request.bearer_auth(token),
            None => request,
        }
    }

    /// Sends a request.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> anyhow::Result<Answer> {
        let response = request.send().await?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Ok(Answer { status, headers, body: response.text().await? })
    }
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_str(&self.body).with_context(|| format!("no JSON: {self:?}"))
    }

    /// A header as text; empty if it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Status and first error type, `404 unknown_lab`. Fails if the error does not have its documented form.
    pub fn problem(&self) -> anyhow::Result<String> {
        let body = self.json()?;
        let problems = body["detail"].as_array().context("no detail")?;
        for problem in problems {
            let shaped =
                problem["loc"].is_array() && problem["msg"].is_string() && problem["type"].is_string();
            anyhow::ensure!(shaped, "a problem of another shape: {problem}");
        }
        anyhow::ensure!(body["request_id"] == self.header("x-request-id"), "another request_id: {self:?}");
        let kind = problems.first().and_then(|problem| problem["type"].as_str()).context("no problem")?;
        Ok(format!("{} {kind}", self.status))
    }
}

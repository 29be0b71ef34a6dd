//! A fake JupyterHub that serves the list of users, with faults that are rare in a real one. Tests with a real Hub are
//! in `tests/e2e`.

use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::AUTHORIZATION;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The token that the fake Hub accepts.
pub const TOKEN: &str = "the-service-at-the-hub";

/// A Hub that knows the default servers of some users; it ends with the test's runtime.
#[derive(Clone)]
pub struct FakeHub {
    address: SocketAddr,
    state: Arc<Mutex<Answers>>,
    lists: Arc<AtomicUsize>,
    traces: Arc<Mutex<Vec<String>>>,
    passes: Arc<Semaphore>,
}

/// The answers of the Hub.
#[derive(Debug, Clone)]
struct Answers {
    users: BTreeSet<String>,
    scopes: Vec<&'static str>,
    page: usize,
    fault: Fault,
}

/// A fault in the Hub's answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No fault.
    None,
    /// All requests are answered with 503.
    Away,
    /// Requests for a list are answered with 500.
    ListFails,
    /// Each page lacks its last user.
    HalfAPage,
    /// There is no second page, although the total announces one.
    NoSecondPage,
    /// The answer is a web page of an ingress, with status 200.
    Html,
    /// Requests are never answered.
    Silent,
    /// A list is answered only when [`FakeHub::let_pass`] is called.
    Slow,
}

impl FakeHub {
    /// Starts a Hub that knows these users and lists two per page.
    pub async fn start(users: &[&str]) -> anyhow::Result<Self> {
        let answers = Answers {
            users: users.iter().map(|&user| user.to_owned()).collect(),
            scopes: vec!["list:users", "read:servers", "read:users:name"],
            page: 2,
            fault: Fault::None,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let hub = Self {
            address,
            state: Arc::new(Mutex::new(answers)),
            lists: Arc::default(),
            traces: Arc::default(),
            passes: Arc::new(Semaphore::new(0)),
        };
        let router = Router::new()
            .route("/hub/api/user", get(owner))
            .route("/hub/api/users", get(list))
            .with_state(hub.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(hub)
    }

    /// The URL of the Hub's API.
    pub fn api_url(&self) -> String {
        format!("http://{}/hub/api", self.address)
    }

    /// Sets the known users.
    pub fn knows(&self, users: &[&str]) {
        self.change(|answers| answers.users = users.iter().map(|&user| user.to_owned()).collect());
    }

    /// Sets the scopes of the token.
    pub fn grants(&self, scopes: &[&'static str]) {
        self.change(|answers| answers.scopes = scopes.to_vec());
    }

    /// Sets the fault.
    pub fn has(&self, fault: Fault) {
        self.change(|answers| answers.fault = fault);
    }

    /// True if the fault is [`Fault::Slow`].
    pub fn is_slow(&self) -> bool {
        self.answers().fault == Fault::Slow
    }

    /// Lets a slow Hub answer one list.
    pub fn let_pass(&self) {
        self.passes.add_permits(1);
    }

    /// The number of requests for a first page.
    pub fn lists(&self) -> usize {
        self.lists.load(Ordering::SeqCst)
    }

    /// The `traceparent` of all requests for lists so far.
    pub fn traces(&self) -> Vec<String> {
        self.traces.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn change(&self, change: impl FnOnce(&mut Answers)) {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner));
    }

    fn answers(&self) -> Answers {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn owner(State(hub): State<FakeHub>, headers: HeaderMap) -> Response {
    let answers = hub.answers();
    if let Some(refused) = refuse(&answers, &headers).await {
        return refused;
    }
    axum::Json(json!({ "kind": "service", "name": "wasmspawner", "scopes": answers.scopes })).into_response()
}

async fn list(
    State(hub): State<FakeHub>,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    let trace = headers.get("traceparent").and_then(|value| value.to_str().ok());
    hub.traces.lock().unwrap_or_else(PoisonError::into_inner).extend(trace.map(str::to_owned));
    let answers = hub.answers();
    let offset: usize = query.get("offset").and_then(|offset| offset.parse().ok()).unwrap_or_default();
    if offset == 0 {
        hub.lists.fetch_add(1, Ordering::SeqCst);
    }
    if answers.fault == Fault::Slow {
        // The permit is used up. The semaphore is never closed, so there is no error.
        let _ = hub.passes.acquire().await.map(SemaphorePermit::forget);
    }
    if let Some(refused) = refuse(&answers, &headers).await {
        return refused;
    }
    let paged =
        headers.get("accept").is_some_and(|accept| accept == "application/jupyterhub-pagination+json");
    if answers.fault == Fault::ListFails || query.get("state").is_none_or(|state| state != "active") || !paged
    {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let user = |name: &String| json!({ "name": name, "kind": "user", "servers": { "": { "ready": true, "pending": null, "stopped": false } } });
    let mut items: Vec<Value> = answers.users.iter().skip(offset).take(answers.page).map(user).collect();
    if answers.fault == Fault::HalfAPage {
        items.pop();
    }
    let (total, after) = (answers.users.len(), offset + answers.page);
    let next = (after < total && answers.fault != Fault::NoSecondPage)
        .then(|| json!({ "offset": after, "limit": answers.page, "url": "http://elsewhere.invalid/" }));
    let pagination = json!({ "offset": offset, "limit": answers.page, "total": total, "next": next });
    axum::Json(json!({ "items": items, "_pagination": pagination })).into_response()
}

async fn refuse(answers: &Answers, headers: &HeaderMap) -> Option<Response> {
    match answers.fault {
        Fault::Away => return Some(StatusCode::SERVICE_UNAVAILABLE.into_response()),
        Fault::Html => return Some("<html>Log in</html>".into_response()),
        Fault::Silent => std::future::pending().await,
        _ => {}
    }
    let known = format!("token {TOKEN}");
    let authorized = headers.get(AUTHORIZATION).is_some_and(|given| *given == *known);
    (!authorized).then(|| StatusCode::FORBIDDEN.into_response())
}

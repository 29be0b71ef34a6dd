//! A fake identity provider that knows some tokens and counts requests, and can be made to fail.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::AUTHORIZATION;
use serde_json::Value;
use tokio::net::TcpListener;

/// A running identity provider; it ends with the test's runtime.
#[derive(Clone)]
pub struct Provider {
    address: SocketAddr,
    state: Arc<Known>,
}

struct Known {
    /// Answers by path and token.
    answers: HashMap<(String, String), Value>,
    asked: AtomicUsize,
    away: AtomicBool,
}

impl Provider {
    /// Starts a provider that answers `(path, token)` with JSON, and all other requests with 403.
    pub async fn start(answers: &[(&str, &str, Value)]) -> anyhow::Result<Self> {
        let entry = |(path, token, answer): &(&str, &str, Value)| {
            ((path.to_string(), token.to_string()), answer.clone())
        };
        let state = Arc::new(Known {
            answers: answers.iter().map(entry).collect(),
            asked: AtomicUsize::default(),
            away: AtomicBool::default(),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().fallback(answer).with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, state })
    }

    /// The provider's base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The number of requests.
    pub fn asked(&self) -> usize {
        self.state.asked.load(Ordering::SeqCst)
    }

    /// Makes all further requests fail.
    pub fn go_away(&self) {
        self.state.away.store(true, Ordering::SeqCst);
    }
}

async fn answer(State(known): State<Arc<Known>>, request: Request) -> Response {
    known.asked.fetch_add(1, Ordering::SeqCst);
    if known.away.load(Ordering::SeqCst) {
        return StatusCode::BAD_GATEWAY.into_response();
    }
    // Long enough that simultaneous requests overlap.
    let mut thinking = tokio::time::interval(Duration::from_millis(50));
    thinking.tick().await;
    thinking.tick().await;
    let header =
        request.headers().get(AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let token = header.split_once(' ').map_or("", |(_, token)| token);
    match known.answers.get(&(request.uri().path().to_owned(), token.to_owned())) {
        Some(answer) => axum::Json(answer.clone()).into_response(),
        None => StatusCode::FORBIDDEN.into_response(),
    }
}

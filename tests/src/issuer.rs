//! A fake OpenID Connect provider: it publishes keys, counts requests, and can be made to fail.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use http::StatusCode;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::signing_key::SigningKey;

/// The audience of the provider's tokens.
pub const AUDIENCE: &str = "wasmspawner";

/// A running provider; it ends with the test's runtime.
#[derive(Clone)]
pub struct Issuer {
    address: SocketAddr,
    state: Arc<Mutex<Answers>>,
    asked: Arc<AtomicUsize>,
    key_sets: Arc<AtomicUsize>,
}

#[derive(Clone)]
struct Answers {
    keys: Vec<Value>,
    fault: IssuerFault,
}

/// A fault in the provider's answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IssuerFault {
    /// No fault.
    None,
    /// All requests are answered with 502.
    Away,
    /// The description names another issuer.
    DescribesAnother,
    /// Requests for the keys are redirected.
    Redirects(String),
    /// The key set is larger than any real one.
    HugeKeySet,
    /// The key set repeats the keys a hundred times.
    ManyKeys,
    /// The key set is a web page.
    Html,
}

impl Issuer {
    /// Starts a provider that publishes these keys.
    pub async fn start(keys: &[&SigningKey]) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let issuer = Self {
            address: listener.local_addr()?,
            state: Arc::new(Mutex::new(Answers { keys: Vec::new(), fault: IssuerFault::None })),
            asked: Arc::default(),
            key_sets: Arc::default(),
        };
        issuer.publishes(keys);
        let router = Router::new()
            .route("/realms/lab/.well-known/openid-configuration", get(description))
            .route("/realms/lab/certs", get(key_set))
            .with_state(issuer.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(issuer)
    }

    /// The identifier of the provider, which is the claim `iss` of its tokens.
    pub fn url(&self) -> String {
        format!("http://{}/realms/lab", self.address)
    }

    /// The address of the keys.
    pub fn keys_url(&self) -> String {
        format!("{}/certs", self.url())
    }

    /// Publishes these keys from now on.
    pub fn publishes(&self, keys: &[&SigningKey]) {
        let keys = keys.iter().map(|key| key.public()).collect();
        self.state.lock().unwrap_or_else(PoisonError::into_inner).keys = keys;
    }

    /// Sets the fault.
    pub fn has(&self, fault: IssuerFault) {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).fault = fault;
    }

    /// The number of requests.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// The number of requests for the keys.
    pub fn key_sets(&self) -> usize {
        self.key_sets.load(Ordering::SeqCst)
    }

    /// The claims of an access token of `user` that is valid for five minutes.
    pub fn claims(&self, user: &str) -> Value {
        let now = Timestamp::now().as_second();
        json!({
            "iss": self.url(), "aud": AUDIENCE, "sub": "7a1f", "typ": "Bearer", "scope": "openid profile",
            "iat": now, "nbf": now, "exp": now + 300,
            "preferred_username": user, "groups": ["physics"],
        })
    }

    fn answers(&self) -> Answers {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn description(State(issuer): State<Issuer>) -> Response {
    let described = match issuer.answers().fault {
        IssuerFault::Away => return StatusCode::BAD_GATEWAY.into_response(),
        IssuerFault::DescribesAnother => format!("{}/", issuer.url()),
        _ => issuer.url(),
    };
    axum::Json(json!({ "issuer": described, "jwks_uri": issuer.keys_url() })).into_response()
}

async fn key_set(State(issuer): State<Issuer>) -> Response {
    issuer.key_sets.fetch_add(1, Ordering::SeqCst);
    let Answers { keys, fault } = issuer.answers();
    match fault {
        IssuerFault::Away => StatusCode::BAD_GATEWAY.into_response(),
        IssuerFault::Redirects(elsewhere) => Redirect::temporary(&elsewhere).into_response(),
        IssuerFault::Html => "<html>Log in</html>".into_response(),
        IssuerFault::HugeKeySet => {
            axum::Json(json!({ "keys": keys, "padding": "x".repeat(1 << 20) })).into_response()
        }
        IssuerFault::ManyKeys => {
            let keys: Vec<Value> = keys.iter().cycle().take(101).cloned().collect();
            axum::Json(json!({ "keys": keys })).into_response()
        }
        IssuerFault::None | IssuerFault::DescribesAnother => {
            axum::Json(json!({ "keys": keys })).into_response()
        }
    }
}

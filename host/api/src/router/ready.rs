//! Refuses requests about labs unless this process knows all labs. A Hub that gets a 404 would assume that its lab has
//! stopped.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONNECTION, HeaderValue};

use crate::problem::Problem;
use wasmspawner_spawner::Labs;

/// Answers with 503 unless the service is ready, and in place of 404 while another process may have taken over.
pub(crate) async fn when_ready(State(labs): State<Labs>, request: Request, next: Next) -> Response {
    if !labs.is_ready() {
        return not_ready();
    }
    let answer = next.run(request).await;
    if answer.status() == StatusCode::NOT_FOUND && !labs.is_certain() { not_ready() } else { answer }
}

/// Answers about the history also while this process stands by, if the history is shared: then it knows what the leader
/// knows. Otherwise like [`when_ready`].
pub(crate) async fn when_history_known(State(labs): State<Labs>, request: Request, next: Next) -> Response {
    if labs.shares_history() { next.run(request).await } else { when_ready(State(labs), request, next).await }
}

/// The connection is closed, so that the next request goes to the process that leads then.
fn not_ready() -> Response {
    let mut answer = Problem::not_ready().into_response();
    answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    answer
}

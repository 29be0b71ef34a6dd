//! Refuses requests about labs until the service knows all labs. A Hub that gets a 404 would assume that its lab has
//! stopped.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::problem::Problem;
use wasmspawner_spawner::Labs;

/// Answers with 503 until the service is ready.
pub(crate) async fn when_ready(State(labs): State<Labs>, request: Request, next: Next) -> Response {
    if labs.is_ready() { next.run(request).await } else { Problem::not_ready().into_response() }
}

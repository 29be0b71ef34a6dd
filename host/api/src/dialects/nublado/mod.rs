//! The REST API of the controller of Nublado 15, for its spawner class of JupyterHub. The source of each rule is Nublado's
//! documentation of its API, and SQR-066.

mod body;
pub(crate) mod choices;
mod errors;
mod event;
mod images;
pub(crate) mod labs;
mod prepulls;
mod state;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post};
use http::{HeaderValue, Method};

pub(crate) use self::errors::NubladoErrors;
pub(crate) use self::images::SpawnerImages;
pub(crate) use self::prepulls::PrepullerStatus;
pub(crate) use self::state::LabState;
use crate::problem::Problem;
use crate::request::body::is_json;
use crate::route::{Callers, Route, route};

/// The header that keeps pages of other sites from changing something where an ingress authenticates callers.
const NOT_A_FORM: &str = "x-requested-with";

/// The routes below the prefix of the dialect.
pub(crate) fn routes() -> Vec<Route> {
    use Callers::{Overseers, OwnersAndOverseers, Starters};
    vec![
        route("GET", "/spawner/v1/labs", Overseers, get(labs::list_labs)),
        route("GET", "/spawner/v1/labs/{username}", OwnersAndOverseers, get(labs::get_lab)),
        route("DELETE", "/spawner/v1/labs/{username}", OwnersAndOverseers, delete(labs::delete_lab)),
        route("POST", "/spawner/v1/labs/{username}/create", Starters, post(labs::create_lab)),
        route("GET", "/spawner/v1/labs/{username}/events", OwnersAndOverseers, get(labs::follow_events)),
        route("GET", "/spawner/v1/lab-form/{username}", OwnersAndOverseers, get(choices::get_form)),
        route("GET", "/spawner/v1/user-status", OwnersAndOverseers, get(labs::get_own_lab)),
        route("GET", "/spawner/v1/images", Overseers, get(choices::list_images)),
        route("GET", "/spawner/v1/prepulls", Overseers, get(choices::list_prepulls)),
    ]
}

/// Translates the proof that no page of another site has sent the request, and the errors in the answer.
///
/// Nublado's clients do not send `X-Requested-With`. A browser asks a server before it lets a page of another site send
/// `DELETE` or a body of JSON, and this service does not allow it, so these requests come from no such page either.
pub(crate) async fn translated(mut request: Request, next: Next) -> Response {
    let asked_first = *request.method() == Method::DELETE || is_json(request.headers());
    if asked_first {
        request.headers_mut().entry(NOT_A_FORM).or_insert(HeaderValue::from_static("nublado"));
    }
    let answer = next.run(request).await;
    match answer.extensions().get::<Problem>() {
        Some(problem) => errors::translate(problem.clone()).into_response(),
        None => answer,
    }
}

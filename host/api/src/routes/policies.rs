//! `/policies`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use crate::wire;
use wasmspawner_spawner::Rules;

/// The loaded policies, in the order in which they are asked.
#[utoipa::path(
    get, path = "/policies", tag = "policies", operation_id = "list_policies",
    responses(
        (status = 200, description = "The policies", body = Vec<wire::Policy>),
        (status = 503, description = "One could not be loaded since the service started", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn list_policies(
    State(rules): State<Rules>,
    caller: Caller,
) -> Result<Json<Vec<wire::Policy>>, Problem> {
    caller.may(Access::ManagePolicies)?;
    if let Some(problem) = rules.missing() {
        return Err(Problem::new(ProblemKind::PoliciesMissing, problem));
    }
    Ok(Json(report(&rules)))
}

/// Loads all policies again.
///
/// If one of them cannot be loaded, none is replaced.
#[utoipa::path(
    post, path = "/policies/reload", tag = "policies", operation_id = "reload_policies",
    responses(
        (status = 200, description = "The policies as they are now", body = Vec<wire::Policy>),
        (status = 409, description = "One cannot be loaded; the old ones stay", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn reload_policies(
    State(rules): State<Rules>,
    caller: Caller,
) -> Result<Json<Vec<wire::Policy>>, Problem> {
    caller.may(Access::ManagePolicies)?;
    rules
        .reload_policies()
        .await
        .map_err(|error| Problem::new(ProblemKind::ReloadFailed, error.to_string()))?;
    Ok(Json(report(&rules)))
}

fn report(rules: &Rules) -> Vec<wire::Policy> {
    rules.policies().into_iter().map(wire::Policy::from).collect()
}

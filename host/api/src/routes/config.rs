//! `/config/reload`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::config_reload::ConfigReload;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use crate::wire;
use wasmspawner_spawner::Rules;

/// Reads the configuration again, and loads all policies again.
///
/// If any part cannot be used, nothing changes. Settings that are used once, when the service starts, are listed and keep
/// their values until a restart.
#[utoipa::path(
    post, path = "/config/reload", tag = "policies", operation_id = "reload_config",
    responses(
        (status = 200, description = "What has changed", body = wire::ReloadedConfig),
        (status = 409, description = "It cannot be used; the old one stays", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn reload_config(
    State(config): State<ConfigReload>,
    State(rules): State<Rules>,
    caller: Caller,
) -> Result<Json<wire::ReloadedConfig>, Problem> {
    caller.may(Access::ManagePolicies)?;
    let changes =
        config.reload().await.map_err(|error| Problem::new(ProblemKind::ReloadFailed, error.to_string()))?;
    Ok(Json(wire::ReloadedConfig::new(changes, rules.policies())))
}

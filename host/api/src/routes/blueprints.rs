//! `/blueprints`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::{Authenticator, Caller};
use crate::problem::Problem;
use crate::request::path::{BlueprintPath, LabPath};
use crate::wire;
use wasmspawner_spawner::{Choices, SpawnError};

/// All blueprints of the site, as they were written, with those objects of the cluster that cannot be used.
#[utoipa::path(
    get, path = "/blueprints", tag = "blueprints", operation_id = "list_blueprints",
    responses((status = 200, description = "The blueprints, sorted by name", body = Vec<wire::Blueprint>))
)]
pub(crate) async fn list_blueprints(
    State(choices): State<Choices>,
    caller: Caller,
) -> Result<Json<Vec<wire::Blueprint>>, Problem> {
    caller.may(Access::ManagePolicies)?;
    Ok(Json(wire::Blueprint::all(&choices.blueprints())))
}

/// The blueprints from which a user may choose.
#[utoipa::path(
    get, path = "/blueprints/{username}", tag = "blueprints", operation_id = "list_blueprint_choices",
    responses((status = 200, description = "The blueprints, sorted by name", body = Vec<wire::BlueprintChoice>))
)]
pub(crate) async fn list_blueprint_choices(
    State(choices): State<Choices>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Json<Vec<wire::BlueprintChoice>>, Problem> {
    caller.may(Access::ReadForm(&key))?;
    let identity = authenticator.identity_of(&caller, &key.user).await?;
    let groups = identity.group_names();
    Ok(Json(choices.blueprints().library.choices(&groups).map(wire::BlueprintChoice::from).collect()))
}

/// What a blueprint means for a user's lab: all that it consists of, merged, and what comes from where.
///
/// The site's policies have not decided about it. The user's own provider is asked about a name that no blueprint of the site
/// has, with the caller's token only if the caller is the user.
#[utoipa::path(
    get, path = "/blueprints/{username}/resolved/{blueprint}", tag = "blueprints", operation_id = "resolve_blueprint",
    responses(
        (status = 200, description = "The merged blueprint", body = wire::ResolvedBlueprint),
        (status = 404, description = "There is no such blueprint for the user", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn resolve_blueprint(
    State(choices): State<Choices>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    BlueprintPath(key, blueprint): BlueprintPath,
) -> Result<Json<wire::ResolvedBlueprint>, Problem> {
    let permit = caller.may(Access::ReadForm(&key))?;
    let identity = authenticator.identity_of(&caller, &key.user).await?;
    let token = caller.token_for_lab(permit);
    match choices.resolve_blueprint(&identity, blueprint, &token).await {
        Ok(Some(resolved)) => Ok(Json(resolved.as_ref().into())),
        Ok(None) => Err(Problem::internal()),
        Err(SpawnError::Invalid(errors)) => {
            let messages: Vec<_> = errors.into_iter().map(|error| error.message).collect();
            Err(Problem::unknown_blueprint(messages.join("; ")))
        }
        Err(error) => Err(error.into()),
    }
}

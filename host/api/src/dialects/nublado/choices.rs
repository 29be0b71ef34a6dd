//! `/lab-form/{username}`, `/images` and `/prepulls`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::response::Html;
use wasmspawner_core::names::ServerName;
use wasmspawner_core::users::access::Access;
use wasmspawner_core::users::identity::Identity;
use wasmspawner_spawner::prepull::LivePrepulls;
use wasmspawner_spawner::{Choices, SpawnError, UserMenu};

use super::errors::NubladoErrors;
use super::images::SpawnerImages;
use super::prepulls::PrepullerStatus;
use crate::auth::{Authenticator, Caller};
use crate::problem::Problem;
use crate::request::path::LabPath;

/// The uid and gid of `nobody`, for the menu of a caller who is not a person.
const NOBODY: u32 = 65_534;

/// The page in place of the form for users who may not start labs.
const UNAVAILABLE: &str = include_str!("unavailable.html");

/// The form with which a user chooses a lab; a text instead of it if the user's quota allows none.
#[utoipa::path(
    get, path = "/spawner/v1/lab-form/{username}", tag = "nublado", operation_id = "nublado_get_form",
    responses(
        (status = 200, description = "The form", body = String, content_type = "text/html; charset=utf-8"),
        (status = "4XX", description = "Refused", body = NubladoErrors),
    )
)]
pub(crate) async fn get_form(
    State(choices): State<Choices>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Html<String>, Problem> {
    caller.may(Access::ReadForm(&key))?;
    let identity = authenticator.identity_of(&caller, &key.user).await?;
    if identity.may_spawn().is_err() {
        return Ok(Html(UNAVAILABLE.to_owned()));
    }
    match choices.spawn_form(&identity, &key.server, BTreeMap::new()).await {
        Err(SpawnError::Denied { .. }) => Ok(Html(UNAVAILABLE.to_owned())),
        form => Ok(Html(form?)),
    }
}

/// The images that can be started.
#[utoipa::path(
    get, path = "/spawner/v1/images", tag = "nublado", operation_id = "nublado_list_images",
    responses((status = 200, description = "The images", body = SpawnerImages), (status = "4XX", description = "Refused", body = NubladoErrors))
)]
pub(crate) async fn list_images(
    State(choices): State<Choices>,
    caller: Caller,
) -> Result<Json<SpawnerImages>, Problem> {
    caller.may(Access::ReadImages)?;
    let menu = menu(&choices, &caller).await?;
    let (registries, nodes) = choices.known_images();
    Ok(Json(menu.map(|menu| SpawnerImages::new(&menu.menu, &registries, &nodes)).unwrap_or_default()))
}

/// The images that nodes pull before somebody asks for them.
#[utoipa::path(
    get, path = "/spawner/v1/prepulls", tag = "nublado", operation_id = "nublado_list_prepulls",
    responses((status = 200, description = "Images and nodes", body = PrepullerStatus), (status = "4XX", description = "Refused", body = NubladoErrors))
)]
pub(crate) async fn list_prepulls(
    State(choices): State<Choices>,
    State(prepulls): State<LivePrepulls>,
    caller: Caller,
) -> Result<Json<PrepullerStatus>, Problem> {
    caller.may(Access::ReadImages)?;
    let menu = menu(&choices, &caller).await?.map(|menu| menu.menu);
    let (registries, nodes) = choices.known_images();
    let report = prepulls.current().unwrap_or_default();
    Ok(Json(PrepullerStatus::new(&report, &menu.unwrap_or_default(), &registries, &nodes)))
}

/// Returns the menu that the caller would have. A service without a uid has that of a user without groups.
async fn menu(choices: &Choices, caller: &Caller) -> Result<Option<UserMenu>, Problem> {
    let nobody = || Identity::with_numbers(caller.username.clone(), NOBODY, NOBODY);
    let identity = caller.own_identity().cloned().unwrap_or_else(nobody);
    Ok(choices.image_menu(&identity, &ServerName::default()).await?)
}

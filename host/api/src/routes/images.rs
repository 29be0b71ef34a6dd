//! `/images`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::{Authenticator, Caller};
use crate::problem::Problem;
use crate::request::path::LabPath;
use crate::wire;
use wasmspawner_spawner::Choices;

/// The images that registries and nodes have.
///
/// The registries are asked every `images.refresh_every`, and not during this request.
#[utoipa::path(
    get, path = "/images", tag = "images", operation_id = "list_images",
    responses((status = 200, description = "The repositories of `images.repositories`, and the nodes", body = wire::KnownImages))
)]
pub(crate) async fn list_images(
    State(choices): State<Choices>,
    caller: Caller,
) -> Result<Json<wire::KnownImages>, Problem> {
    caller.may(Access::ReadImages)?;
    let (registries, nodes) = choices.known_images();
    Ok(Json(wire::KnownImages::new(&registries, &nodes)))
}

/// The images from which a user may choose.
#[utoipa::path(
    get, path = "/images/{username}", tag = "images", operation_id = "get_image_menu",
    responses((status = 200, description = "The menu, also with what the form does not show", body = wire::ImageMenu))
)]
pub(crate) async fn get_image_menu(
    State(choices): State<Choices>,
    State(authenticator): State<Authenticator>,
    caller: Caller,
    LabPath(key): LabPath,
) -> Result<Json<wire::ImageMenu>, Problem> {
    caller.may(Access::ReadForm(&key))?;
    let identity = authenticator.identity_of(&caller, &key.user).await?;
    let (menu, (registries, nodes)) =
        (choices.image_menu(&identity, &key.server).await?, choices.known_images());
    Ok(Json(menu.map(|menu| wire::ImageMenu::new(&menu, &registries, &nodes)).unwrap_or_default()))
}

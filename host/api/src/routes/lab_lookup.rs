//! `/lab-lookup`

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::Deserialize;
use wasmspawner_core::names::spawn_key::SpawnKind;
use wasmspawner_core::policy::user_string::SpawnString;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use crate::request::location;
use crate::request::prefix::Prefix;
use crate::wire;
use wasmspawner_spawner::Labs;

/// The lab that a user string means, or a kernel or pool of the lab.
///
/// A user string says in one text who wants what: `ada`, `ada/gpu`, `ada~blueprint=gpu`, `ada~repo=org/project`. The same text
/// always means the same lab. `ada/gpu~kernel=6f1a` is a kernel of a lab, `ada~dask-pool=tides` a pool. This route starts nothing.
#[utoipa::path(
    get, path = "/lab-lookup", tag = "labs", operation_id = "find_lab",
    params(("user_string" = String, Query, description = "Who wants what", example = "ada~blueprint=gpu")),
    responses(
        (status = 200, description = "The lab, kernel or pool", body = wire::LabLookup),
        (status = 404, description = "There is none now", body = crate::problem::ErrorBody),
        (status = 422, description = "Not a user string", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn find_lab(
    State(labs): State<Labs>,
    State(prefix): State<Prefix>,
    caller: Caller,
    asked: Result<Query<Asked>, QueryRejection>,
) -> Result<Json<wire::LabLookup>, Problem> {
    let asked = user_string(asked)?;
    let key = asked.key();
    caller.may(Access::ReadOrStop(&key.lab))?;
    labs.require_readable(&key)?;
    let path = format!("{}{}", prefix.as_str(), location::of_child(&key));
    let lab = labs.lab(&key).ok_or_else(|| {
        let kind = key.kind();
        let unknown = match kind {
            SpawnKind::Lab | SpawnKind::Injected => ProblemKind::UnknownLab,
            SpawnKind::Kernel => ProblemKind::UnknownKernel,
            SpawnKind::DaskPool => ProblemKind::UnknownPool,
        };
        Problem::at(
            &QUERY,
            unknown,
            format!("`{asked}` is the {} at {path}, and there is none now", kind.noun()),
        )
    })?;
    Ok(Json(wire::LabLookup::new(&asked, path, &lab)))
}

const QUERY: [&str; 2] = ["query", "user_string"];

/// The query. Other parameters are ignored: proxies and browsers add their own.
#[derive(Deserialize)]
pub(crate) struct Asked {
    user_string: Option<String>,
}

fn user_string(asked: Result<Query<Asked>, QueryRejection>) -> Result<SpawnString, Problem> {
    let wrong = |msg| Problem::at(&QUERY, ProblemKind::InvalidUserString, msg);
    let Query(Asked { user_string }) = asked.map_err(|rejection| wrong(rejection.body_text()))?;
    let text = user_string
        .ok_or_else(|| wrong("a user string is missing, such as `ada~blueprint=gpu`".to_owned()))?;
    SpawnString::parse(&text).map_err(|mistake| wrong(mistake.to_string()))
}

//! `/labs`

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{RawQuery, State};
use http::StatusCode;
use wasmspawner_core::access::Action;
use wasmspawner_core::lifecycle::LabStatus;

use super::auth::Caller;
use super::problem::Problem;
use crate::spawner::Labs;

/// Which users have a lab.
#[utoipa::path(
    get, path = "/labs", tag = "labs", operation_id = "list_labs",
    params(("status" = Option<Vec<String>>, Query, description = "Which labs count: `starting`, `running`, `terminating`, `failed` or `all`; may be repeated. Without it: `running`.")),
    responses(
        (status = 200, description = "Usernames, sorted, each once", body = Vec<String>, example = json!(["adam", "rra"])),
        (status = 422, description = "Not a status", body = super::problem::ErrorBody),
    )
)]
pub(super) async fn list_labs(
    State(labs): State<Labs>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Json<BTreeSet<String>>, Problem> {
    caller.may(Action::ListLabs)?;
    let wanted = statuses(query.as_deref().unwrap_or_default())?;
    let users = labs.list().into_iter().filter(|(_, status)| wanted.contains(status));
    Ok(Json(users.map(|(key, _)| key.user.into()).collect()))
}

fn statuses(query: &str) -> Result<Vec<LabStatus>, Problem> {
    let mut wanted = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("status", "running")) => wanted.push(LabStatus::Running),
            Some(("status", "starting")) => wanted.push(LabStatus::Starting),
            Some(("status", "terminating")) => wanted.push(LabStatus::Terminating),
            Some(("status", "failed")) => wanted.push(LabStatus::Failed),
            Some(("status", "all")) => wanted.extend([
                LabStatus::Running,
                LabStatus::Starting,
                LabStatus::Terminating,
                LabStatus::Failed,
            ]),
            Some(("status", _)) => {
                let msg = "a status is starting, running, terminating, failed or all";
                let loc = &["query", "status"];
                return Err(Problem::at(StatusCode::UNPROCESSABLE_ENTITY, loc, "unknown_status", msg));
            }
            // Proxies and browsers add parameters of their own.
            _ => {}
        }
    }
    if wanted.is_empty() {
        wanted.push(LabStatus::Running);
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn running_labs_count_unless_something_else_is_asked() {
        assert_eq!(statuses("").unwrap(), [LabStatus::Running]);
        assert_eq!(statuses("x=1").unwrap(), [LabStatus::Running]);
        assert_eq!(
            statuses("status=failed&status=starting").unwrap(),
            [LabStatus::Failed, LabStatus::Starting]
        );
        assert_eq!(statuses("status=all").unwrap().len(), 4);
        assert!(statuses("status=gone").is_err());
    }
}

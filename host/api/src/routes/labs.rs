//! `/labs`

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::{RawQuery, State};
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use crate::wire::{self, StatusFilter};
use wasmspawner_spawner::Labs;

/// The names of users who have a lab.
#[utoipa::path(
    get, path = "/labs", tag = "labs", operation_id = "list_labs",
    params(("status" = Option<Vec<wire::StatusFilter>>, Query, description = "Which labs count; may be repeated. Without it: `running`.")),
    responses(
        (status = 200, description = "Usernames, sorted, each once", body = Vec<String>, example = json!(["adam", "rra"])),
        (status = 422, description = "Not a status", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn list_labs(
    State(labs): State<Labs>,
    caller: Caller,
    RawQuery(query): RawQuery,
) -> Result<Json<BTreeSet<String>>, Problem> {
    caller.may(Access::ListLabs)?;
    let wanted = filters(query.as_deref().unwrap_or_default())?;
    let users =
        labs.list()?.into_iter().filter(|(_, status)| wanted.iter().any(|filter| filter.includes(*status)));
    Ok(Json(users.map(|(key, _)| key.user.into()).collect()))
}

fn filters(query: &str) -> Result<Vec<StatusFilter>, Problem> {
    let mut wanted = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        // Other parameters are ignored: proxies and browsers add their own.
        let Some(("status", name)) = pair.split_once('=') else { continue };
        let filter = StatusFilter::parse(name).ok_or_else(|| {
            let msg = "a status is starting, running, terminating, failed or all";
            Problem::at(&["query", "status"], ProblemKind::UnknownStatus, msg)
        })?;
        wanted.push(filter);
    }
    if wanted.is_empty() {
        wanted.push(StatusFilter::Running);
    }
    Ok(wanted)
}

#[cfg(test)]
mod tests {
    use wasmspawner_core::lifecycle::LabStatus;

    use super::*;

    #[test]
    fn the_status_filter_defaults_to_running() {
        use LabStatus::{Failed, Running, Starting, Terminating};
        for (query, expected) in [
            ("", vec![Running]),
            ("x=1", vec![Running]),
            ("status=failed&status=starting", vec![Starting, Failed]),
            ("status=all", vec![Starting, Running, Terminating, Failed]),
        ] {
            let filters = filters(query).unwrap();
            let wanted: Vec<_> = LabStatus::ALL
                .into_iter()
                .filter(|status| filters.iter().any(|filter| filter.includes(*status)))
                .collect();
            assert_eq!(wanted, expected, "{query}");
        }
        for query in ["status=gone", "status=", "status=running&status=Failed"] {
            assert!(filters(query).is_err(), "{query}");
        }
    }
}

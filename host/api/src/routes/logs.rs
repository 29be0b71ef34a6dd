//! `/labs/{username}/logs`

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use crate::request::path::LabPath;
use crate::wire;
use wasmspawner_spawner::{Labs, LogError, LogQuery, LogsError};

/// The number of lines if the request has none, and the largest number.
const LINES: u16 = 100;
const MAX_LINES: u16 = 1000;

/// The last lines that a container of the lab has printed.
///
/// Only the lab's user and administrators may read them. What is probably a credential is replaced; a program may print a
/// credential in a form that is not recognized.
#[utoipa::path(
    get, path = "/labs/{username}/logs", tag = "labs", operation_id = "get_logs",
    params(
        ("container" = Option<String>, Query, description = "The name of a container or an init container. Without it: the lab's own."),
        ("previous" = Option<bool>, Query, description = "The log of the run before the container's last restart"),
        ("tail" = Option<u16>, Query, minimum = 1, maximum = 1000, description = "How many lines. Without it: 100."),
    ),
    responses(
        (status = 200, description = "The last lines", body = wire::Log),
        (status = 404, description = "There is no lab, or its pod has no such container", body = crate::problem::ErrorBody),
        (status = 409, description = "There is no such log now, or the service has no permission to read logs", body = crate::problem::ErrorBody),
        (status = 422, description = "Not a number of lines", body = crate::problem::ErrorBody),
        (status = 503, description = "The cluster cannot be asked now", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn get_logs(
    State(labs): State<Labs>,
    caller: Caller,
    LabPath(key): LabPath,
    asked: Result<Query<Pairs>, QueryRejection>,
) -> Result<Json<wire::Log>, Problem> {
    caller.may(Access::ReadLogs(&key))?;
    let query = query(asked)?;
    let log = labs.logs(&key.clone().into(), &query).await?;
    Ok(Json(wire::Log::new(&key, query.previous, log)))
}

/// The parameters of the query, decoded.
type Pairs = Vec<(String, String)>;

/// Reads the query. Other parameters are ignored: proxies and browsers add their own.
fn query(asked: Result<Query<Pairs>, QueryRejection>) -> Result<LogQuery, Problem> {
    let asked_for =
        asked.map_err(|rejection| Problem::new(ProblemKind::BadRequest, rejection.body_text()))?;
    let mut asked = LogQuery { container: None, previous: false, lines: LINES };
    for (name, value) in &asked_for.0 {
        match (name.as_str(), value.as_str()) {
            ("container", name) => asked.container = Some(name.to_owned()),
            ("previous", "true" | "1" | "") => asked.previous = true,
            ("previous", "false" | "0") => asked.previous = false,
            ("previous", _) => {
                let msg = "`previous` is true or false";
                return Err(Problem::at(&["query", "previous"], ProblemKind::WrongType, msg));
            }
            ("tail", number) => {
                let number = number.parse().ok().filter(|number| (1..=MAX_LINES).contains(number));
                asked.lines = number.ok_or_else(|| {
                    let msg = format!("the number of lines is 1 to {MAX_LINES}");
                    Problem::at(&["query", "tail"], ProblemKind::InvalidNumber, msg)
                })?;
            }
            _ => {}
        }
    }
    Ok(asked)
}

impl From<LogsError> for Problem {
    fn from(error: LogsError) -> Self {
        let msg = error.to_string();
        match error {
            LogsError::Spawn(error) => error.into(),
            LogsError::Log(LogError::NoContainer { .. }) => {
                Self::at(&["query", "container"], ProblemKind::UnknownContainer, msg)
            }
            LogsError::Log(LogError::NotPermitted) => Self::new(ProblemKind::LogsNotPermitted, msg),
            LogsError::InWorkload | LogsError::Log(_) => {
                Self::at(&["path", "username"], ProblemKind::NoLog, msg)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<LogQuery, Problem> {
        super::query(Query::try_from_uri(&format!("/?{query}").parse().unwrap()))
    }

    #[test]
    fn the_query_names_container_run_and_number_of_lines() {
        let asked = |container: Option<&str>, previous, lines| LogQuery {
            container: container.map(str::to_owned),
            previous,
            lines,
        };
        for (query, expected) in [
            ("", asked(None, false, 100)),
            ("x=1&tail=5", asked(None, false, 5)),
            ("container=init%2Dhome&previous=true&tail=1000", asked(Some("init-home"), true, 1000)),
            ("previous", asked(None, true, 100)),
            ("previous=true&previous=false", asked(None, false, 100)),
        ] {
            assert_eq!(parse(query).unwrap(), expected, "{query}");
        }
        for query in ["tail=0", "tail=1001", "tail=-1", "tail=", "tail=70000", "tail=a", "previous=yes"] {
            assert!(parse(query).is_err(), "{query}");
        }
    }
}

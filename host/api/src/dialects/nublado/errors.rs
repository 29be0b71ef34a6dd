//! Errors as Nublado's controller has them: `{"detail": [{"msg", "type", "loc"}]}`, with its types.

use http::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::body::IMAGES;
use crate::problem::kind::ProblemKind;
use crate::problem::{Detail, Problem};

/// The body of every answer with a 4xx or 5xx status.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NubladoErrors {
    detail: Vec<NubladoError>,
}

/// One problem with a request.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
struct NubladoError {
    /// The problem as text for people.
    msg: String,
    /// The problem as an identifier for programs: Nublado's where it has one, and otherwise this service's.
    #[serde(rename = "type")]
    #[schema(example = "unknown_user")]
    kind: String,
    /// The part of the request that the problem is about.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    loc: Vec<String>,
}

/// Translates a refusal. The status changes where Nublado has another one for it.
pub(super) fn translate(problem: Problem) -> Problem {
    let first = problem.details().first().and_then(translated_kind);
    let status = first.map_or_else(|| problem.status(), |(_, status)| status);
    let detail = problem.details().iter().map(error).collect();
    // Serializing strings cannot fail; if it did, the empty body would still have the right status.
    problem.with_body(status, serde_json::to_vec(&NubladoErrors { detail }).unwrap_or_default())
}

fn error(detail: &Detail) -> NubladoError {
    let kind = translated_kind(detail).map_or_else(|| detail.kind.name(), |(kind, _)| kind);
    // Nublado names a place only where the client can do something about it.
    let of_the_state = matches!(detail.kind.status(), StatusCode::CONFLICT | StatusCode::UNAUTHORIZED);
    let loc = if of_the_state { Vec::new() } else { detail.loc.clone() };
    NubladoError { msg: detail.msg.clone(), kind: kind.to_owned(), loc }
}

/// Returns Nublado's type and status of a problem that it has, too.
fn translated_kind(detail: &Detail) -> Option<(&'static str, StatusCode)> {
    let option = match detail.loc.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["body", "options", option] => Some(option),
        _ => None,
    };
    Some(match (detail.kind, option) {
        (ProblemKind::UnknownLab, _) => ("unknown_user", StatusCode::NOT_FOUND),
        (ProblemKind::PermissionDenied, _) if detail.is_about_quota() => {
            ("insufficient_quota", StatusCode::FORBIDDEN)
        }
        (ProblemKind::SpawnInProgress | ProblemKind::StopInProgress | ProblemKind::Busy, _) => {
            ("operation_in_progress", StatusCode::CONFLICT)
        }
        (ProblemKind::InvalidText, Some(option)) if IMAGES.contains(&option) => {
            ("invalid_docker_reference", StatusCode::UNPROCESSABLE_ENTITY)
        }
        (ProblemKind::InvalidOption, Some(option)) if IMAGES.contains(&option) => {
            ("unknown_image", StatusCode::BAD_REQUEST)
        }
        (ProblemKind::InvalidOption, Some("size")) => ("invalid_lab_size", StatusCode::UNPROCESSABLE_ENTITY),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn problems_have_nublado_s_types_and_statuses() {
        let option = |kind, name: &'static str| Problem::at(&["body", "options", name], kind, "no");
        for (problem, expected) in [
            (Problem::unknown_lab("no"), (404, "unknown_user", vec!["path", "username"])),
            (Problem::new(ProblemKind::PermissionDenied, "no"), (403, "permission_denied", vec![])),
            (Problem::at(&["path", "username"], ProblemKind::LabExists, "no"), (409, "lab_exists", vec![])),
            (Problem::new(ProblemKind::SpawnInProgress, "no"), (409, "operation_in_progress", vec![])),
            (Problem::new(ProblemKind::StopInProgress, "no"), (409, "operation_in_progress", vec![])),
            (
                Problem::at(&["header", "authorization"], ProblemKind::InvalidToken, "no"),
                (401, "invalid_token", vec![]),
            ),
            (
                option(ProblemKind::InvalidOption, "image_tag"),
                (400, "unknown_image", vec!["body", "options", "image_tag"]),
            ),
            (
                option(ProblemKind::InvalidText, "image_list"),
                (422, "invalid_docker_reference", vec!["body", "options", "image_list"]),
            ),
            (
                option(ProblemKind::InvalidOption, "size"),
                (422, "invalid_lab_size", vec!["body", "options", "size"]),
            ),
            (
                option(ProblemKind::InvalidOption, "colour"),
                (422, "invalid_option", vec!["body", "options", "colour"]),
            ),
            (Problem::new(ProblemKind::DeleteFailed, "no"), (500, "delete_failed", vec![])),
        ] {
            let of = error(&problem.details()[0]);
            let status = translate(problem).status().as_u16();
            assert_eq!((status, of.kind.as_str(), of.loc.iter().map(String::as_str).collect()), expected);
        }
    }
}

//! The body of a request for the spawn form of a server that was started before.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::policy::Options;

use super::spawn::{object, options, submission};
use crate::problem::kind::ProblemKind;
use crate::problem::{Detail, Problem};

/// The choices of the last start.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpawnFormBody {
    /// The options with which the same server was last started, as they were in the request to spawn it.
    #[schema(schema_with = submission, required = false)]
    last_options: Options,
}

const LAST_OPTIONS: &str = "last_options";

/// Parses a body. A body that is not JSON is a 400; otherwise all mistakes are reported together, as a 422.
pub(crate) fn parse_spawn_form(body: &[u8]) -> Result<Options, Problem> {
    let json = serde_json::from_slice(body)
        .map_err(|error| Problem::at(&["body"], ProblemKind::MalformedJson, error.to_string()))?;
    let mut mistakes = Vec::new();
    let mut fields = object(&["body"], json, &mut mistakes);
    let options = options(&["body", LAST_OPTIONS], fields.remove(LAST_OPTIONS), &mut mistakes);
    for key in fields.keys() {
        let msg = "a request for the form has `last_options`, and nothing else";
        mistakes.push(Detail::new(["body", key], ProblemKind::UnknownField, msg));
    }
    if mistakes.is_empty() { Ok(options) } else { Err(Problem::from_details(mistakes)) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value as Json, json};

    use super::*;

    fn parse(body: &Json) -> Result<Options, Problem> {
        parse_spawn_form(body.to_string().as_bytes())
    }

    #[test]
    fn options_are_those_of_a_spawn_and_may_be_left_out() {
        assert_eq!(parse(&json!({})).unwrap(), Options::new());
        let options = parse(&json!({"last_options": {"size": ["large"], "debug": "true"}})).unwrap();
        assert_eq!(serde_json::to_value(options).unwrap(), json!({"size": "large", "debug": true}));
    }

    #[test]
    fn every_mistake_is_answered_with_its_place() {
        let body = json!({"last_options": {"a": null, "b": {}}, "options": {}});
        let problem = format!("{:?}", parse(&body).unwrap_err());
        for place in
            [r#"["body", "last_options", "a"]"#, r#"["body", "last_options", "b"]"#, r#"["body", "options"]"#]
        {
            assert!(problem.contains(place), "{place} is not in {problem}");
        }
        assert!(format!("{:?}", parse_spawn_form(b"{").unwrap_err()).contains("malformed_json"));
        assert!(format!("{:?}", parse(&json!([])).unwrap_err()).contains("wrong_type"));
        let many: serde_json::Map<_, _> = (0..129).map(|at| (at.to_string(), json!(1))).collect();
        assert!(format!("{:?}", parse(&json!({"last_options": many})).unwrap_err()).contains("too_large"));
    }
}

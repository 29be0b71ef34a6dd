//! The body of a request to spawn. It is parsed by hand, so that the answer names the place of every mistake.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use utoipa::ToSchema;
use utoipa::openapi::{ArrayBuilder, Object, ObjectBuilder, OneOfBuilder, Schema, Type};
use wasmspawner_core::names::EnvName;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::policy::Options;
use wasmspawner_core::policy::form;
use wasmspawner_core::policy::user_string::{UserString, Wanted};

use crate::problem::kind::ProblemKind;
use crate::problem::{Detail, Problem};

/// The options and the environment of the lab to start, and what it is to be. All of them may be left out.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SpawnBody {
    /// The submission of the spawn form, with single values. A list of one element counts as that element; the texts
    /// `true` and `false` count as booleans. Several texts reach the policy as one text, the list as JSON. The site's
    /// policy decides which keys exist. All together have at most 64 KiB.
    #[schema(schema_with = submission, required = false)]
    options: Options,
    /// Environment variables. A name consists of letters, digits and `_`, does not start with a digit, and has at most
    /// 249 characters. A value must not contain NUL. All together have at most 256 KiB.
    #[schema(schema_with = environment, required = false)]
    env: BTreeMap<String, String>,
    /// Who wants what, in one text: `ada~blueprint=gpu`, `ada~repo=org/project`. The user is that of the path. The lab is
    /// the one that the text means, on a server of its own; a path with a server has to name the same.
    #[schema(required = false, example = "ada~blueprint=gpu", max_length = 1024)]
    user_string: Option<String>,
}

/// The schema of `options`.
pub(super) fn submission() -> Object {
    let single = |kind| ObjectBuilder::new().schema_type(kind);
    let value = || {
        let any = OneOfBuilder::new().item(single(Type::String)).item(single(Type::Number));
        any.item(single(Type::Boolean))
    };
    let one = ArrayBuilder::new().items(value()).min_items(Some(1)).max_items(Some(1));
    let several = ArrayBuilder::new().items(single(Type::String)).min_items(Some(2));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .additional_properties(Some(Schema::from(value().item(one).item(several))))
        .max_properties(Some(OPTIONS_LIMIT.entries))
        .examples([json!({"image": "minimal", "size": "small", "debug": true})])
        .build()
}

/// The schema of `env`.
pub(super) fn environment() -> Object {
    let text = |pattern| ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern));
    ObjectBuilder::new()
        .schema_type(Type::Object)
        .property_names(Some(text("^[A-Za-z_][A-Za-z0-9_]{0,255}$")))
        .additional_properties(Some(Schema::from(text(r"^[^\u0000]*$"))))
        .max_properties(Some(ENV_LIMIT.entries))
        .examples([json!({"JUPYTERHUB_API_URL": "http://hub:8081/hub/api"})])
        .build()
}

/// A parsed body of a request to spawn.
#[derive(Debug, PartialEq)]
pub(crate) struct ParsedSpawn {
    pub(crate) options: Options,
    pub(crate) env: BTreeMap<EnvName, String>,
    user_string: Option<UserString>,
}

/// Parses a body. A body that is not JSON is a 400; otherwise all mistakes are reported together, as a 422.
pub(crate) fn parse_spawn(body: &[u8]) -> Result<ParsedSpawn, Problem> {
    let json: Json = serde_json::from_slice(body)
        .map_err(|error| Problem::at(&["body"], ProblemKind::MalformedJson, error.to_string()))?;
    let mut mistakes = Vec::new();
    let mut fields = object(&["body"], json, &mut mistakes);
    let mut part = |name, limit: SizeLimit| {
        let entries = object(&["body", name], fields.remove(name).unwrap_or_else(empty), &mut mistakes);
        limit.check(&["body", name], entries, &mut mistakes)
    };
    let (options, env) = (part("options", OPTIONS_LIMIT), part("env", ENV_LIMIT));
    let parsed = ParsedSpawn {
        options: parse_options(&["body", "options"], &options, &mut mistakes),
        env: parse_env(env, &mut mistakes),
        user_string: fields.remove("user_string").and_then(|text| parse_user_string(&text, &mut mistakes)),
    };
    for key in fields.keys() {
        mistakes.push(Detail::new(
            ["body", key],
            ProblemKind::UnknownField,
            "a spawn has `options`, `env` and `user_string`, and nothing else",
        ));
    }
    if mistakes.is_empty() { Ok(parsed) } else { Err(Problem::from_details(mistakes)) }
}

fn parse_user_string(text: &Json, mistakes: &mut Vec<Detail>) -> Option<UserString> {
    let parsed = match text {
        Json::Null => return None,
        Json::String(text) => UserString::parse(text).map_err(|mistake| mistake.to_string()),
        other => Err(format!("must be a string, not {}", kind(other))),
    };
    parsed.map_err(|msg| mistakes.push(Detail::new(USER_STRING, ProblemKind::InvalidUserString, msg))).ok()
}

impl ParsedSpawn {
    /// Returns the lab to start and its wanted content. The path names the lab, or only its user if there is a user
    /// string.
    pub(crate) fn lab(&self, path: &LabKey) -> Result<(LabKey, Wanted), Problem> {
        let Some(text) = &self.user_string else { return Ok((path.clone(), Wanted::default())) };
        let lab = text.lab();
        if lab.user != path.user || !path.server.is_default() && lab != *path {
            let msg = format!("`{text}` is the lab {lab}, and the path names {path}");
            return Err(Problem::at(&USER_STRING, ProblemKind::AnotherLab, msg));
        }
        Ok((lab, text.wanted.clone()))
    }
}

const USER_STRING: [&str; 2] = ["body", "user_string"];

/// The limits on a part of a body.
pub(super) struct SizeLimit {
    entries: usize,
    /// The limit on the bytes of all names and values together, as JSON.
    bytes: usize,
}

pub(super) const OPTIONS_LIMIT: SizeLimit = SizeLimit { entries: 128, bytes: 64 << 10 };
pub(super) const ENV_LIMIT: SizeLimit = SizeLimit { entries: 512, bytes: 256 << 10 };

impl SizeLimit {
    /// Returns the entries at this place. If they are too many or too large, returns none and adds one mistake.
    pub(super) fn check(
        &self,
        place: &[&str],
        entries: Map<String, Json>,
        mistakes: &mut Vec<Detail>,
    ) -> Map<String, Json> {
        let bytes: usize = entries.iter().map(|(name, value)| name.len() + value.to_string().len()).sum();
        if entries.len() <= self.entries && bytes <= self.bytes {
            return entries;
        }
        let msg = format!(
            "at most {} entries of {} KiB in all are allowed; there are {} of {} KiB",
            self.entries,
            self.bytes >> 10,
            entries.len(),
            bytes.div_ceil(1 << 10)
        );
        mistakes.push(Detail::new(place.iter().copied(), ProblemKind::TooLarge, msg));
        Map::new()
    }
}

pub(super) fn empty() -> Json {
    Json::Object(Map::new())
}

pub(super) fn object(loc: &[&str], value: Json, mistakes: &mut Vec<Detail>) -> Map<String, Json> {
    match value {
        Json::Object(fields) => fields,
        other => {
            let msg = format!("must be an object, not {}", kind(&other));
            mistakes.push(Detail::new(loc.iter().copied(), ProblemKind::WrongType, msg));
            Map::new()
        }
    }
}

/// Parses the options at this place of a body; none if they are absent.
pub(super) fn options(place: &[&str], value: Option<Json>, mistakes: &mut Vec<Detail>) -> Options {
    let entries = object(place, value.unwrap_or_else(empty), mistakes);
    let entries = OPTIONS_LIMIT.check(place, entries, mistakes);
    parse_options(place, &entries, mistakes)
}

/// Parses the entries at this place as options.
pub(super) fn parse_options(
    place: &[&str],
    options: &Map<String, Json>,
    mistakes: &mut Vec<Detail>,
) -> Options {
    form::options(options).unwrap_or_else(|errors| {
        let details = errors.into_iter().map(|error| {
            let loc = [place, &[error.field.as_str()]].concat();
            Detail::new(loc, ProblemKind::InvalidOption, error.message)
        });
        mistakes.extend(details);
        Options::new()
    })
}

pub(super) fn parse_env(env: Map<String, Json>, mistakes: &mut Vec<Detail>) -> BTreeMap<EnvName, String> {
    let mut parsed = BTreeMap::new();
    for (name, value) in env {
        match (env_name(&name), env_value(value)) {
            (Ok(name), Ok(value)) => drop(parsed.insert(name, value)),
            (Err(msg), _) | (_, Err(msg)) => {
                mistakes.push(Detail::new(["body", "env", name.as_str()], ProblemKind::InvalidEnv, msg));
            }
        }
    }
    parsed
}

/// Parses the name of a variable. Unlike Kubernetes it refuses `-` and `.`, because no shell can use such a name.
fn env_name(name: &str) -> Result<EnvName, String> {
    let parsed = EnvName::parse(name).ok().filter(|_| !name.contains(['-', '.']));
    parsed.ok_or_else(|| {
        "a name is 1 to 249 letters, digits and '_', and does not start with a digit".to_owned()
    })
}

fn env_value(value: Json) -> Result<String, String> {
    match value {
        Json::String(text) if text.contains('\0') => {
            Err("contains NUL, which no environment can hold".to_owned())
        }
        Json::String(text) => Ok(text),
        other => Err(format!("must be a string, not {}", kind(&other))),
    }
}

pub(super) fn kind(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "a boolean",
        Json::Number(_) => "a number",
        Json::String(_) => "a string",
        Json::Array(_) => "a list",
        Json::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wasmspawner_core::policy::Value;

    fn parse(body: &Json) -> Result<ParsedSpawn, Problem> {
        parse_spawn(body.to_string().as_bytes())
    }

    #[test]
    fn form_submissions_become_single_values() {
        let body =
            json!({"options": {"size": ["large"], "debug": ["true"], "reset": "false", "n": 3, "x": 0.5}});
        let options = parse(&body).unwrap().options;
        let expected = [
            ("debug", Value::Boolean(true)),
            ("n", Value::Integer(3)),
            ("reset", Value::Boolean(false)),
            ("size", Value::Text("large".into())),
            ("x", Value::Number(0.5)),
        ];
        assert_eq!(options, expected.map(|(key, value)| (key.to_owned(), value)).into());
    }

    #[test]
    fn an_empty_object_is_a_valid_body() {
        assert_eq!(
            parse(&json!({})).unwrap(),
            ParsedSpawn { options: Options::new(), env: BTreeMap::new(), user_string: None }
        );
    }

    #[test]
    fn every_mistake_is_answered_with_its_place() {
        let body = json!({
            "options": {"a": [], "b": null, "c": [["x"]], "d": {"e": 1}, "ok": 1},
            "env": {"1A": "", "A-B": "", "N": 1, "Z": "a\u{0}b", "": "", "OK": ""},
            "user_string": "ada~colour=red",
            "more": 1,
        });
        let problem = format!("{:?}", parse(&body).unwrap_err());
        for place in [
            r#"["body", "options", "a"]"#,
            r#"["body", "options", "b"]"#,
            r#"["body", "options", "c"]"#,
            r#"["body", "options", "d"]"#,
            r#"["body", "env", "1A"]"#,
            r#"["body", "env", "A-B"]"#,
            r#"["body", "env", "N"]"#,
            r#"["body", "env", "Z"]"#,
            r#"["body", "env", ""]"#,
            r#"["body", "user_string"]"#,
            r#"["body", "more"]"#,
        ] {
            assert!(problem.contains(place), "{place} is not in {problem}");
        }
        assert!(!problem.contains("ok") && !problem.contains("OK"), "{problem}");
    }

    #[test]
    fn options_and_env_are_limited_in_number_and_size() {
        let entries = |number: usize, value: &str| -> Json {
            (0..number).map(|at| (format!("X{at}"), Json::from(value))).collect::<Map<_, _>>().into()
        };
        assert!(parse(&json!({"options": entries(128, "x"), "env": entries(512, "x")})).is_ok());
        let large = "x".repeat(1 << 10);
        for (part, wrong) in [
            ("options", entries(129, "x")),
            ("options", entries(64, &large)),
            ("env", entries(513, "x")),
            ("env", entries(256, &large)),
        ] {
            let problem = format!("{:?}", parse(&json!({ part: wrong })).unwrap_err());
            assert!(
                problem.contains("too_large") && problem.contains(&format!("[\"body\", \"{part}\"]")),
                "{problem}"
            );
        }
    }

    #[test]
    fn a_body_that_is_not_json_is_malformed() {
        for body in ["", "{", "\u{0}", "{\"options\": {}} x", &"[".repeat(1000)] {
            let problem = format!("{:?}", parse_spawn(body.as_bytes()).unwrap_err());
            assert!(problem.contains("malformed_json") && problem.contains("400"), "{problem}");
        }
        let problem = format!("{:?}", parse_spawn(b"[]").unwrap_err());
        assert!(problem.contains("must be an object, not a list"), "{problem}");
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_parsed_without_a_panic(body: Vec<u8>) {
            let _ = parse_spawn(&body);
        }
    }
}

//! The bodies of requests about Dask pools. They are parsed by hand, so that the answer names the place of every mistake.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::{Object, ObjectBuilder, OneOfBuilder, Schema, Type};
use wasmspawner_core::children::dask::{MAX_GROUPS, MAX_WORKERS, Pool, Resize, WorkerGroup, WorkerRange};
use wasmspawner_core::names::{EnvName, WorkerGroupName};
use wasmspawner_core::policy::Options;
use wasmspawner_core::values::secret::SecretString;

use super::kernel::parse_json;
use super::kernel_body::Texts;
use super::spawn::{
    ENV_LIMIT, OPTIONS_LIMIT, empty, environment, kind, object, options, parse_env, parse_options, submission,
};
use crate::problem::kind::ProblemKind;
use crate::problem::{Detail, Problem};

/// The limit on the characters of a certificate or its key.
const MAX_PEM_CHARS: usize = 16 << 10;
/// The longest idle time-out: a year, in seconds.
const MAX_IDLE_SECONDS: u32 = 366 * 24 * 60 * 60;

/// The Dask pool to start.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DaskPoolBody {
    /// How many workers: a number, or `minimum` and `maximum`, between which the pool's scheduler decides. Required, unless
    /// there are `groups`.
    #[schema(schema_with = workers, required = false)]
    workers: Json,
    /// Groups of workers, each with its own number and options, in place of `workers`.
    #[schema(required = false, min_items = 1, max_items = 8)]
    groups: Vec<WorkerGroupBody>,
    /// The scheduler, where it differs from the pool.
    #[schema(required = false)]
    scheduler: SchedulerBody,
    /// Options of the spawn form in which the pool differs from its lab, such as `size` or `image`.
    #[schema(schema_with = submission, required = false)]
    options: Options,
    /// Environment variables of scheduler and workers, beside those that the site gives every lab.
    #[schema(schema_with = environment, required = false)]
    env: BTreeMap<String, String>,
    /// After how many seconds without work the pool ends. Default: the site's, or never.
    #[schema(required = false, minimum = 1, maximum = 31_622_400)]
    idle_timeout: Option<u32>,
    /// True if the pool goes on when its lab ends. It then needs an `idle_timeout`.
    #[schema(required = false)]
    outlive_lab: bool,
    /// The certificate with which scheduler, workers and clients of this pool know each other. The client makes it; it is
    /// its own authority.
    #[schema(schema_with = certificate)]
    tls: Map<String, Json>,
}

/// A group of workers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkerGroupBody {
    /// Its name. Dask's tasks ask for the group with a resource of this name.
    #[schema(pattern = "^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$")]
    name: String,
    /// How many workers, as for a pool.
    #[schema(schema_with = workers)]
    workers: Json,
    /// Options of the spawn form in which the workers differ from the pool, such as `size`.
    #[schema(schema_with = submission, required = false)]
    options: Options,
}

/// The scheduler of a pool, where it differs from the pool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SchedulerBody {
    /// Options of the spawn form in which the scheduler differs from the pool, such as `size`.
    #[schema(schema_with = submission, required = false)]
    options: Options,
}

/// Another number of workers.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkersBody {
    /// The group whose number of workers is changed, if the pool has groups.
    #[schema(required = false, pattern = "^[a-z]([a-z0-9-]{0,18}[a-z0-9])?$")]
    group: Option<String>,
    /// How many workers: a number, or `minimum` and `maximum`, between which the pool's scheduler decides.
    #[schema(schema_with = workers)]
    workers: Json,
}

/// The schema of `workers`.
fn workers() -> Schema {
    let number = || {
        let number = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
        number.maximum(Some(MAX_WORKERS))
    };
    let range = ObjectBuilder::new()
        .property("minimum", number().description(Some("Not above `maximum`")).build())
        .property("maximum", number().build())
        .required("maximum")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .examples([json!({"minimum": 0, "maximum": 8})]);
    Schema::OneOf(OneOfBuilder::new().item(number().build()).item(range.build()).build())
}

/// The schema of `tls`.
fn certificate() -> Object {
    let pem = || ObjectBuilder::new().schema_type(Type::String).max_length(Some(MAX_PEM_CHARS));
    let pem = |what: &str| pem().pattern(Some(format!("^-----BEGIN [A-Z ]*{what}-----[^\\u0000]*$"))).build();
    ObjectBuilder::new()
        .property("certificate", pem("CERTIFICATE"))
        .property("key", pem("PRIVATE KEY"))
        .required("certificate")
        .required("key")
        .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
        .build()
}

/// A parsed body of a request to start a pool.
#[derive(Debug)]
pub(crate) struct ParsedPool {
    pub(crate) options: Options,
    pub(crate) env: BTreeMap<EnvName, String>,
    pub(crate) pool: Pool,
}

/// Parses the body of a request to start a pool. A body that is not JSON is a 400; otherwise all mistakes are reported
/// together, as a 422.
pub(crate) fn parse_pool(body: &[u8]) -> Result<ParsedPool, Problem> {
    let mut mistakes = Vec::new();
    let mut fields = object(&["body"], parse_json(body)?, &mut mistakes);
    let mut part = |name| object(&["body", name], fields.remove(name).unwrap_or_else(empty), &mut mistakes);
    let (options, env, tls) = (part("options"), part("env"), part("tls"));
    let options = OPTIONS_LIMIT.check(&["body", "options"], options, &mut mistakes);
    let env = ENV_LIMIT.check(&["body", "env"], env, &mut mistakes);
    let options = parse_options(&["body", "options"], &options, &mut mistakes);
    let env = parse_env(env, &mut mistakes);
    let groups = groups(fields.remove("groups"), &mut mistakes);
    let workers = match (fields.remove("workers"), groups.is_empty()) {
        (None, false) => groups.iter().map(|group| group.workers).sum(),
        (Some(_), false) => {
            let msg = "cannot be combined with `groups`, each of which has its own number";
            mistakes.push(Detail::new(["body", "workers"], ProblemKind::InvalidRange, msg));
            WorkerRange::fixed(0)
        }
        (workers, true) => range(&["body", "workers"], workers, &mut mistakes),
    };
    if workers.maximum > MAX_WORKERS {
        let msg = format!("all groups together have at most {MAX_WORKERS} workers");
        mistakes.push(Detail::new(["body", "groups"], ProblemKind::InvalidRange, msg));
    }
    let scheduler_options = scheduler(fields.remove("scheduler"), &mut mistakes);
    let idle_timeout = seconds(fields.remove("idle_timeout"), &mut mistakes);
    let outlives_lab = match fields.remove("outlive_lab") {
        None => false,
        Some(Json::Bool(outlives)) => outlives,
        Some(other) => {
            let msg = format!("must be true or false, not {}", kind(&other));
            mistakes.push(Detail::new(["body", "outlive_lab"], ProblemKind::WrongType, msg));
            false
        }
    };
    let (certificate, key) = pair(tls, &mut mistakes);
    for key in fields.keys() {
        let msg = "a pool has `workers` or `groups`, `scheduler`, `options`, `env`, `idle_timeout`, `outlive_lab` and `tls`, and nothing else";
        mistakes.push(Detail::new(["body", key], ProblemKind::UnknownField, msg));
    }
    if mistakes.is_empty() {
        let key = SecretString::new(key);
        let pool = Pool { workers, groups, scheduler_options, idle_timeout, outlives_lab, certificate, key };
        Ok(ParsedPool { options, env, pool })
    } else {
        Err(Problem::from_details(mistakes))
    }
}

/// Parses the body of a request for another number of workers.
pub(crate) fn parse_workers(body: &[u8]) -> Result<Resize, Problem> {
    let mut mistakes = Vec::new();
    let mut fields = object(&["body"], parse_json(body)?, &mut mistakes);
    let group = match fields.remove("group") {
        None | Some(Json::Null) => None,
        Some(name) => group_name(&["body", "group"], Some(name), &mut mistakes),
    };
    let workers = range(&["body", "workers"], fields.remove("workers"), &mut mistakes);
    for key in fields.keys() {
        let msg = "the body has `workers` and `group`, and nothing else";
        mistakes.push(Detail::new(["body", key], ProblemKind::UnknownField, msg));
    }
    if mistakes.is_empty() { Ok(Resize { group, workers }) } else { Err(Problem::from_details(mistakes)) }
}

/// Parses the groups of workers; none if they are absent.
fn groups(value: Option<Json>, mistakes: &mut Vec<Detail>) -> Vec<WorkerGroup> {
    let list = match value {
        None => return Vec::new(),
        Some(Json::Array(list)) if (1..=MAX_GROUPS).contains(&list.len()) => list,
        Some(_) => {
            let msg = format!("must be a list of 1 to {MAX_GROUPS} groups, each with `name` and `workers`");
            mistakes.push(Detail::new(["body", "groups"], ProblemKind::WrongType, msg));
            return Vec::new();
        }
    };
    let mut groups: Vec<WorkerGroup> = Vec::new();
    for (at, group) in list.into_iter().enumerate() {
        let at = at.to_string();
        let place = ["body", "groups", at.as_str()];
        let loc = |name| [&place[..], &[name]].concat();
        let mut fields = object(&place, group, mistakes);
        let name = group_name(&loc("name"), fields.remove("name"), mistakes);
        let workers = range(&loc("workers"), fields.remove("workers"), mistakes);
        let options = options(&loc("options"), fields.remove("options"), mistakes);
        for key in fields.keys() {
            let msg = "a group has `name`, `workers` and `options`, and nothing else";
            mistakes.push(Detail::new(loc(key.as_str()), ProblemKind::UnknownField, msg));
        }
        let Some(name) = name else { continue };
        if groups.iter().any(|other| other.name == name) {
            let msg = format!("`{name}` is the name of another group too");
            mistakes.push(Detail::new(loc("name"), ProblemKind::InvalidName, msg));
        }
        groups.push(WorkerGroup { name, workers, options });
    }
    groups
}

/// Parses the options of a scheduler; none if they are absent.
fn scheduler(value: Option<Json>, mistakes: &mut Vec<Detail>) -> Options {
    let place = ["body", "scheduler"];
    let mut fields = object(&place, value.unwrap_or_else(empty), mistakes);
    let options = options(&["body", "scheduler", "options"], fields.remove("options"), mistakes);
    for key in fields.keys() {
        let msg = "a scheduler has `options`, and nothing else";
        mistakes.push(Detail::new(["body", "scheduler", key], ProblemKind::UnknownField, msg));
    }
    options
}

fn group_name(loc: &[&str], value: Option<Json>, mistakes: &mut Vec<Detail>) -> Option<WorkerGroupName> {
    let parsed = match value {
        None => Err((ProblemKind::Missing, "is missing".to_owned())),
        Some(Json::String(name)) => {
            WorkerGroupName::parse(name).map_err(|error| (ProblemKind::InvalidName, error.to_string()))
        }
        Some(other) => Err((ProblemKind::WrongType, format!("must be a string, not {}", kind(&other)))),
    };
    parsed.map_err(|(kind, msg)| mistakes.push(Detail::new(loc.iter().copied(), kind, msg))).ok()
}

fn range(place: &[&str], value: Option<Json>, mistakes: &mut Vec<Detail>) -> WorkerRange {
    let none = WorkerRange::fixed(0);
    let loc = |name| [place, &[name]].concat();
    let mut fields = match value {
        None => {
            let msg = "is missing; write a number, or an object with `minimum` and `maximum`";
            mistakes.push(Detail::new(place.iter().copied(), ProblemKind::Missing, msg));
            return none;
        }
        Some(Json::Object(fields)) => fields,
        Some(value) => {
            return number(place, &value, mistakes).map_or(none, WorkerRange::fixed);
        }
    };
    let mut part = |name, default: Option<u32>| match fields.remove(name) {
        Some(value) => number(&loc(name), &value, mistakes),
        None if default.is_none() => {
            mistakes.push(Detail::new(loc(name), ProblemKind::Missing, "is missing"));
            None
        }
        None => default,
    };
    let (minimum, maximum) = (part("minimum", Some(0)), part("maximum", None));
    for key in fields.keys() {
        let msg = "workers have `minimum` and `maximum`, and nothing else";
        mistakes.push(Detail::new(loc(key.as_str()), ProblemKind::UnknownField, msg));
    }
    let (Some(minimum), Some(maximum)) = (minimum, maximum) else { return none };
    if minimum > maximum {
        let msg = format!("{minimum} is more than the maximum {maximum}");
        mistakes.push(Detail::new(loc("minimum"), ProblemKind::InvalidRange, msg));
    }
    WorkerRange { minimum, maximum }
}

fn number(loc: &[&str], value: &Json, mistakes: &mut Vec<Detail>) -> Option<u32> {
    let number = whole(value).filter(|number| *number <= MAX_WORKERS);
    if number.is_none() {
        let msg = format!("must be a whole number from 0 to {MAX_WORKERS}");
        mistakes.push(Detail::new(loc.iter().copied(), ProblemKind::InvalidNumber, msg));
    }
    number
}

fn seconds(value: Option<Json>, mistakes: &mut Vec<Detail>) -> Option<u32> {
    let value = value.filter(|value| !value.is_null())?;
    let seconds = whole(&value).filter(|seconds| (1..=MAX_IDLE_SECONDS).contains(seconds));
    if seconds.is_none() {
        let msg = format!("must be a whole number of seconds from 1 to {MAX_IDLE_SECONDS}");
        mistakes.push(Detail::new(["body", "idle_timeout"], ProblemKind::InvalidNumber, msg));
    }
    seconds
}

/// Returns the value as a whole number. In JSON, 2.0 is the integer 2.
fn whole(value: &Json) -> Option<u32> {
    let number = value.as_f64()?;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the next line refuses what is changed by this"
    )]
    let whole = number as u32;
    f64::from(whole).total_cmp(&number).is_eq().then_some(whole)
}

fn pair(mut fields: Map<String, Json>, mistakes: &mut Vec<Detail>) -> (String, String) {
    let mut texts = Texts { at: vec!["body", "tls"], fields: &mut fields, longest: MAX_PEM_CHARS, mistakes };
    let (certificate, key) = (texts.required("certificate"), texts.required("key"));
    for (name, text, what) in [("certificate", &certificate, "CERTIFICATE"), ("key", &key, "PRIVATE KEY")] {
        let first = text.lines().next().unwrap_or_default();
        let is_pem = first.starts_with("-----BEGIN ") && first.ends_with(&format!("{what}-----"));
        if !text.is_empty() && !is_pem {
            let msg = format!("is not PEM: it has to begin with `-----BEGIN {what}-----`");
            texts.wrong(name, ProblemKind::InvalidPem, msg);
        }
    }
    for key in fields.keys() {
        let msg = "has `certificate` and `key`, and nothing else";
        mistakes.push(Detail::new(["body", "tls", key], ProblemKind::UnknownField, msg));
    }
    (certificate, key)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nMII\n-----END CERTIFICATE-----\n";
    const KEY: &str = "-----BEGIN PRIVATE KEY-----\nMII\n-----END PRIVATE KEY-----\n";

    fn parse(body: &Json) -> Result<ParsedPool, Problem> {
        parse_pool(body.to_string().as_bytes())
    }

    #[test]
    fn a_pool_is_its_workers_and_the_certificate_of_its_client() {
        let body = json!({
            "workers": {"maximum": 8}, "idle_timeout": 60.0, "outlive_lab": true, "env": {"A": "b"},
            "options": {"size": "small"}, "tls": {"certificate": CERTIFICATE, "key": KEY},
        });
        let ParsedPool { options, env, pool } = parse(&body).unwrap();
        assert_eq!((options.len(), env.len()), (1, 1));
        assert_eq!(pool.workers, WorkerRange { minimum: 0, maximum: 8 });
        assert_eq!((pool.idle_timeout, pool.outlives_lab, pool.key.expose()), (Some(60), true, KEY));
    }

    #[test]
    fn every_mistake_is_answered_with_its_place() {
        let body = json!({
            "workers": {"minimum": 3, "maximum": 2, "most": 1}, "idle_timeout": 0, "outlive_lab": "yes",
            "tls": {"certificate": "x", "key": 1, "ca": ""}, "image": "x",
        });
        let problem = format!("{:?}", parse(&body).unwrap_err());
        for loc in [
            r#"["body", "workers", "minimum"]"#,
            r#"["body", "workers", "most"]"#,
            r#"["body", "idle_timeout"]"#,
            r#"["body", "outlive_lab"]"#,
            r#"["body", "tls", "certificate"]"#,
            r#"["body", "tls", "key"]"#,
            r#"["body", "tls", "ca"]"#,
            r#"["body", "image"]"#,
        ] {
            assert!(problem.contains(loc), "{loc}: {problem}");
        }
    }

    #[test]
    fn groups_have_names_numbers_and_options_in_the_order_of_the_client() {
        let body = json!({
            "groups": [
                {"name": "gpu", "workers": {"maximum": 4}, "options": {"size": ["gpu"]}},
                {"name": "cpu", "workers": 2},
            ],
            "scheduler": {"options": {"size": "small"}},
            "tls": {"certificate": CERTIFICATE, "key": KEY},
        });
        let Pool { workers, groups, scheduler_options, .. } = parse(&body).unwrap().pool;
        assert_eq!(workers, WorkerRange { minimum: 2, maximum: 6 });
        let shown: Vec<_> = groups.iter().map(|group| (group.name.as_str(), group.options.len())).collect();
        assert_eq!((shown, scheduler_options.len()), (vec![("gpu", 1), ("cpu", 0)], 1));
    }

    #[test]
    fn every_mistake_in_groups_is_answered_with_its_place() {
        let body = json!({
            "workers": 2,
            "groups": [
                {"name": "GPU", "workers": {"minimum": 3, "maximum": 2}, "options": {"a": null}, "more": 1},
                {"name": "cpu", "workers": 10_000},
                {"name": "cpu", "workers": 1},
                {},
                5,
            ],
            "scheduler": {"options": {"b": {}}, "size": 1},
            "tls": {"certificate": CERTIFICATE, "key": KEY},
        });
        let problem = format!("{:?}", parse(&body).unwrap_err());
        for loc in [
            r#"["body", "workers"]"#,
            r#"["body", "groups", "0", "name"]"#,
            r#"["body", "groups", "0", "workers", "minimum"]"#,
            r#"["body", "groups", "0", "options", "a"]"#,
            r#"["body", "groups", "0", "more"]"#,
            r#"["body", "groups", "2", "name"]"#,
            r#"["body", "groups", "3", "name"]"#,
            r#"["body", "groups", "3", "workers"]"#,
            r#"["body", "groups", "4"]"#,
            r#"["body", "scheduler", "options", "b"]"#,
            r#"["body", "scheduler", "size"]"#,
        ] {
            assert!(problem.contains(loc), "{loc}: {problem}");
        }
        let too_many: Vec<_> =
            (0..9).map(|number| json!({"name": format!("g{number}"), "workers": 0})).collect();
        for groups in [
            json!([]),
            json!(too_many),
            json!({}),
            json!([{"name": "a", "workers": 6000}, {"name": "b", "workers": 6000}]),
        ] {
            let body = json!({"groups": groups, "tls": {"certificate": CERTIFICATE, "key": KEY}});
            assert!(format!("{:?}", parse(&body).unwrap_err()).contains(r#"["body", "groups"]"#), "{body}");
        }
    }

    #[test]
    fn a_number_of_workers_is_whole() {
        let parse = |workers: Json| {
            let resize = parse_workers(json!({ "workers": workers }).to_string().as_bytes());
            resize.map(|resize| resize.workers)
        };
        for (workers, expected) in [
            (json!(0), Some(WorkerRange::fixed(0))),
            (json!(4.0), Some(WorkerRange::fixed(4))),
            (json!({"minimum": 1, "maximum": 1}), Some(WorkerRange::fixed(1))),
            (json!(-1), None),
            (json!(0.5), None),
            (json!(10_001), None),
            (json!("4"), None),
            (json!(null), None),
            (json!({"minimum": 1}), None),
        ] {
            assert_eq!(parse(workers.clone()).ok(), expected, "{workers}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_parsed_without_a_panic(body: Vec<u8>) {
            let _ = (parse_pool(&body), parse_workers(&body));
        }
    }
}

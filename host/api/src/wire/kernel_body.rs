//! The body of a request to start a kernel. It is parsed by hand, so that the answer names the place of every mistake.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::{Map, Value as Json, json};
use utoipa::ToSchema;
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::{Array, ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};
use wasmspawner_core::children::kernel::{self, Connection, CurveKeys};
use wasmspawner_core::policy::Options;
use wasmspawner_core::values::secret::SecretString;

use super::kernel::parse_json;
use super::spawn::{
    ENV_LIMIT, OPTIONS_LIMIT, empty, environment, kind, object, parse_env, parse_options, submission,
};
use crate::problem::kind::ProblemKind;
use crate::problem::{Detail, Problem};

/// The limits on the number of words in a kernel's command, and on the characters of each word.
const MAX_WORDS: usize = 128;
const MAX_WORD_CHARS: usize = 4096;
/// The limit on the characters of any other text.
const MAX_TEXT_CHARS: usize = 1024;

/// The kernel to start.
#[derive(Debug, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KernelBody {
    /// The name of the kernel spec.
    #[schema(example = "python3", max_length = 1024, pattern = r"^[^\u0000]*$")]
    kernel_name: String,
    /// The kernel's command. `{connection_file}` stands for the path of its connection file.
    #[schema(schema_with = command_words)]
    command: Vec<String>,
    /// Options of the spawn form in which the kernel differs from its lab, such as `size` or `image`.
    #[schema(schema_with = submission, required = false)]
    options: Options,
    /// Environment variables of the kernel, beside those that the site gives every lab.
    #[schema(schema_with = environment, required = false)]
    env: BTreeMap<String, String>,
    /// Absolute path of the working directory. Default: that of the lab.
    #[schema(required = false, max_length = 1024, pattern = r"^/[^\u0000]*$")]
    working_dir: Option<String>,
    /// The keys that the kernel and its clients share. The client makes them.
    #[schema(schema_with = connection_keys)]
    connection: Map<String, Json>,
}

/// The schema of `command`. The first word is the program.
fn command_words() -> Array {
    let word = || text(MAX_WORD_CHARS, r"^[^\u0000]*$");
    ArrayBuilder::new()
        .prefix_items([word().min_length(Some(1)).build()])
        .items(word().build())
        .min_items(Some(1))
        .max_items(Some(MAX_WORDS))
        .examples([json!(["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"])])
        .build()
}

/// The schema of `connection`: with the kernel's keys for `CurveZMQ`, or without them.
fn connection_keys() -> Schema {
    let any = || text(MAX_TEXT_CHARS, r"^[^\u0000]*$").build();
    let scheme = text(MAX_TEXT_CHARS, r"^(hmac-[^\u0000]*)?$").examples([json!("hmac-sha256")]).build();
    let plain = || {
        ObjectBuilder::new()
            .property("key", any())
            .property("signature_scheme", scheme.clone())
            .property("kernel_name", any())
            .required("key")
            .required("signature_scheme")
            .additional_properties(Some(AdditionalProperties::<Schema>::FreeForm(false)))
    };
    let curve = plain()
        .property("curve_publickey", any())
        .property("curve_secretkey", any())
        .required("curve_publickey")
        .required("curve_secretkey");
    Schema::OneOf(OneOfBuilder::new().item(plain().build()).item(curve.build()).build())
}

fn text(longest: usize, pattern: &str) -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String).max_length(Some(longest)).pattern(Some(pattern))
}

/// A parsed body of a request to start a kernel.
#[derive(Debug)]
pub(crate) struct ParsedKernel {
    pub(crate) options: Options,
    pub(crate) kernel: kernel::Kernel,
}

/// Parses the body of a request to start a kernel. A body that is not JSON is a 400; otherwise all mistakes are reported
/// together, as a 422.
pub(crate) fn parse_kernel(body: &[u8]) -> Result<ParsedKernel, Problem> {
    let mut mistakes = Vec::new();
    let mut fields = object(&["body"], parse_json(body)?, &mut mistakes);
    let mut part = |name| object(&["body", name], fields.remove(name).unwrap_or_else(empty), &mut mistakes);
    let (options, env, connection) = (part("options"), part("env"), part("connection"));
    let options = OPTIONS_LIMIT.check(&["body", "options"], options, &mut mistakes);
    let env = ENV_LIMIT.check(&["body", "env"], env, &mut mistakes);
    let options = parse_options(&["body", "options"], &options, &mut mistakes);
    let env = parse_env(env, &mut mistakes);
    let mut at_top =
        Texts { at: vec!["body"], fields: &mut fields, longest: MAX_TEXT_CHARS, mistakes: &mut mistakes };
    let name = at_top.required("kernel_name");
    // Only for this field, null means the same as a missing one.
    at_top.fields.retain(|name, value| name != "working_dir" || !value.is_null());
    let working_dir = at_top.optional("working_dir");
    let command = command(fields.remove("command"), &mut mistakes);
    if let Some(path) = working_dir.as_ref().filter(|path| !path.starts_with('/')) {
        let msg = format!("{path:?} is not an absolute path");
        mistakes.push(Detail::new(["body", "working_dir"], ProblemKind::InvalidPath, msg));
    }
    let connection = parse_connection(connection, &mut mistakes);
    for key in fields.keys() {
        let msg = "a kernel has `kernel_name`, `command`, `options`, `env`, `working_dir` and `connection`, and \
                   nothing else";
        mistakes.push(Detail::new(["body", key], ProblemKind::UnknownField, msg));
    }
    if mistakes.is_empty() {
        let kernel = kernel::Kernel { name, command, env, working_dir, connection };
        Ok(ParsedKernel { options, kernel })
    } else {
        Err(Problem::from_details(mistakes))
    }
}

/// The texts of one object of the body.
pub(super) struct Texts<'a> {
    pub(super) at: Vec<&'a str>,
    pub(super) fields: &'a mut Map<String, Json>,
    /// The limit on the characters of one text.
    pub(super) longest: usize,
    pub(super) mistakes: &'a mut Vec<Detail>,
}

impl Texts<'_> {
    pub(super) fn required(&mut self, name: &str) -> String {
        self.optional(name).unwrap_or_else(|| {
            self.wrong(name, ProblemKind::Missing, "is missing".to_owned());
            String::new()
        })
    }

    fn optional(&mut self, name: &str) -> Option<String> {
        match self.fields.remove(name)? {
            Json::String(text) if text.chars().count() <= self.longest && !text.contains('\0') => Some(text),
            Json::String(_) => {
                let msg = format!("has more than {} characters, or contains NUL", self.longest);
                self.wrong(name, ProblemKind::InvalidText, msg);
                Some(String::new())
            }
            other => {
                self.wrong(name, ProblemKind::WrongType, format!("must be a string, not {}", kind(&other)));
                Some(String::new())
            }
        }
    }

    pub(super) fn wrong(&mut self, name: &str, kind: ProblemKind, msg: String) {
        let loc: Vec<&str> = self.at.iter().copied().chain([name]).collect();
        self.mistakes.push(Detail::new(loc, kind, msg));
    }
}

fn command(value: Option<Json>, mistakes: &mut Vec<Detail>) -> Vec<String> {
    let words: Option<Vec<String>> = match value {
        Some(Json::Array(words)) => words.into_iter().map(|word| word.as_str().map(str::to_owned)).collect(),
        _ => None,
    };
    let sound = |words: &Vec<String>| {
        (1..=MAX_WORDS).contains(&words.len())
            && words.iter().all(|word| word.chars().count() <= MAX_WORD_CHARS)
            && !words[0].is_empty()
            && words.iter().all(|word| !word.contains('\0'))
    };
    words.filter(sound).unwrap_or_else(|| {
        let msg = format!(
            "must be a list of 1 to {MAX_WORDS} strings without NUL, each of at most {MAX_WORD_CHARS} characters, the \
             program first"
        );
        mistakes.push(Detail::new(["body", "command"], ProblemKind::InvalidCommand, msg));
        Vec::new()
    })
}

fn parse_connection(mut fields: Map<String, Json>, mistakes: &mut Vec<Detail>) -> Connection {
    let mut texts =
        Texts { at: vec!["body", "connection"], fields: &mut fields, longest: MAX_TEXT_CHARS, mistakes };
    let key = SecretString::new(texts.required("key"));
    let signature_scheme = texts.required("signature_scheme");
    let _ = texts.optional("kernel_name");
    let (public, secret) = (texts.optional("curve_publickey"), texts.optional("curve_secretkey"));
    if !signature_scheme.starts_with("hmac-") && !signature_scheme.is_empty() {
        let msg = format!("{signature_scheme:?} is not known; kernels sign with hmac-sha256 and its like");
        texts.wrong("signature_scheme", ProblemKind::InvalidScheme, msg);
    }
    let curve = match (public, secret) {
        (Some(public), Some(secret)) => Some(CurveKeys { public, secret: SecretString::new(secret) }),
        (None, None) => None,
        _ => {
            let msg = "`curve_publickey` and `curve_secretkey` belong together".to_owned();
            texts.wrong("curve_publickey", ProblemKind::IncompleteKeys, msg);
            None
        }
    };
    for key in fields.keys() {
        let msg = "is not known here; the service decides about addresses and ports";
        mistakes.push(Detail::new(["body", "connection", key], ProblemKind::UnknownField, msg));
    }
    Connection { key, signature_scheme, curve }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(body: &Json) -> Result<ParsedKernel, Problem> {
        parse_kernel(body.to_string().as_bytes())
    }

    #[test]
    fn a_kernel_is_its_command_and_the_keys_of_its_client() {
        let body = json!({
            "kernel_name": "python3",
            "command": ["python", "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "options": {"size": "small"},
            "env": {"A": "b"},
            "working_dir": null,
            "connection": {"key": "k", "signature_scheme": "hmac-sha256", "kernel_name": ""},
        });
        let ParsedKernel { options, kernel } = parse(&body).unwrap();
        assert_eq!(options.len(), 1);
        assert_eq!((kernel.name.as_str(), kernel.command.len(), kernel.working_dir), ("python3", 5, None));
        assert_eq!((kernel.connection.key.expose(), kernel.connection.curve), ("k", None));
    }

    #[test]
    fn every_mistake_is_answered_with_its_place() {
        let body = json!({
            "command": [],
            "working_dir": "work",
            "connection": {"key": 1, "signature_scheme": "none", "curve_publickey": "p", "ip": "1.2.3.4"},
            "image": "x",
        });
        let problem = format!("{:?}", parse(&body).unwrap_err());
        for loc in [
            r#"["body", "kernel_name"]"#,
            r#"["body", "command"]"#,
            r#"["body", "working_dir"]"#,
            r#"["body", "connection", "key"]"#,
            r#"["body", "connection", "signature_scheme"]"#,
            r#"["body", "connection", "curve_publickey"]"#,
            r#"["body", "connection", "ip"]"#,
            r#"["body", "image"]"#,
        ] {
            assert!(problem.contains(loc), "{loc}: {problem}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_body_is_parsed_without_a_panic(body: Vec<u8>) {
            let _ = parse_kernel(&body);
        }
    }
}

//! The parameters for names in paths.

use utoipa::Modify;
use utoipa::openapi::path::{Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::{ObjectBuilder, OpenApi, Required, Type};

use super::operations;

/// Returns the pattern of a name: no slash and no control character, no white space at either end, and neither `.` nor
/// `..`. This is the rule of `wasmspawner_core::names::Username`, except for the length in bytes, as a regular
/// expression of ECMA-262.
fn pattern() -> String {
    let inner = r"[^/\u0000-\u001f\u007f-\u009f]";
    let space = r"\u0000-\u0020\u007f-\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";
    let (outer, no_dot) = (format!("[^/{space}]"), format!("[^/.{space}]"));
    format!("^({no_dot}|{no_dot}{outer}|{outer}{no_dot}|{outer}{inner}+{outer})$")
}

/// Adds the parameters `username`, `job_id`, `kernel`, `target`, `blueprint` and `pool` to every path that has them.
pub(super) struct Names;

impl Modify for Names {
    fn modify(&self, document: &mut OpenApi) {
        for (path, item) in &mut document.paths.paths {
            if path.contains("{username}") {
                let parameter = name("username", "ada", "The user's name at the Hub");
                item.parameters.get_or_insert_default().push(parameter.into());
            }
            if path.contains("{job_id}") {
                item.parameters.get_or_insert_default().push(job_id().into());
            }
            if path.contains("{kernel}") {
                let (id, what) =
                    ("4d1a30f9-3e9b-4f6e-8f0a-7a1a0ecb2a1f", "The kernel's id, which its client chooses");
                item.parameters.get_or_insert_default().push(child("kernel", id, what).into());
            }
            if path.contains("{target}") {
                let parameter = object("target", "gpu-1", "The target's name");
                item.parameters.get_or_insert_default().push(parameter.into());
            }
            if path.contains("{blueprint}") {
                let parameter = object("blueprint", "gpu", "The blueprint's name");
                item.parameters.get_or_insert_default().push(parameter.into());
            }
            if path.contains("{pool}") {
                let parameter = child("pool", "survey", "The pool's name, which its client chooses");
                item.parameters.get_or_insert_default().push(parameter.into());
            }
        }
    }
}

/// Adds the paths of named servers: the same operations, with the parameter `server`.
pub(super) struct NamedServers;

impl Modify for NamedServers {
    fn modify(&self, document: &mut OpenApi) {
        let named: Vec<(String, PathItem)> = document.paths.paths.iter().filter_map(named_server).collect();
        document.paths.paths.extend(named);
    }
}

fn named_server((path, item): (&String, &PathItem)) -> Option<(String, PathItem)> {
    let (before, after) = path.split_once("/{username}")?;
    let mut item = item.clone();
    item.parameters
        .get_or_insert_default()
        .insert(1, name("server", "second", "Which of the user's named servers").into());
    for operation in operations(&mut item) {
        if let Some(id) = &mut operation.operation_id {
            id.push_str("_of_server");
        }
    }
    Some((format!("{before}/{{username}}/servers/{{server}}{after}"), item))
}

/// Returns a parameter for a name that Kubernetes allows for an object. The rule is that of
/// `wasmspawner_core::names::ObjectName`, except for the length.
fn object(parameter: &str, example: &str, description: &str) -> Parameter {
    let label = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
    let schema =
        ObjectBuilder::new().schema_type(Type::String).pattern(Some(format!("^{label}(\\.{label})*$")));
    ParameterBuilder::new()
        .name(parameter)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema.max_length(Some(253))))
        .example(Some(example.into()))
        .build()
}

/// Returns the parameter for the id of an operation.
fn job_id() -> Parameter {
    let hex = "[0-9a-fA-F]";
    let pattern = format!("^{hex}{{8}}-{hex}{{4}}-{hex}{{4}}-{hex}{{4}}-{hex}{{12}}$");
    ParameterBuilder::new()
        .name("job_id")
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some("The operation's id: `job_id` of a lab, and the first part of the ids of events"))
        .schema(Some(ObjectBuilder::new().schema_type(Type::String).pattern(Some(pattern))))
        .example(Some("01a1fd9e-deb5-7652-a3d6-2d71fc436701".into()))
        .build()
}

/// Returns a parameter for the name of a child. The rule is that of `wasmspawner_core::names::ChildName`.
fn child(name: &str, example: &str, what: &str) -> Parameter {
    let schema =
        ObjectBuilder::new().schema_type(Type::String).pattern(Some("^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(what))
        .schema(Some(schema))
        .example(Some(example.into()))
        .build()
}

fn name(name: &str, example: &str, what: &str) -> Parameter {
    let description = format!("{what}; percent-encoded, and at most 255 bytes of UTF-8 before that");
    let schema = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1)).max_length(Some(255));
    ParameterBuilder::new()
        .name(name)
        .parameter_in(ParameterIn::Path)
        .required(Required::True)
        .description(Some(description))
        .schema(Some(schema.pattern(Some(pattern()))))
        .example(Some(example.into()))
        .build()
}

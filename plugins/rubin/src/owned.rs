//! Keys of Nublado that belong to the service, not to its policies.

use serde_json::Value;
use wasmspawner_sdk::Section;

/// The advice for the path of a file with logins of registries.
pub(crate) const REGISTRY_LOGINS: &str = "set `registries.credentials_file` in the service's configuration";

/// Warns about keys that have an effect in Nublado but none here, each with what to do instead. They are no errors, so that
/// a configuration of Nublado can be used as it is. A key without a content (`null`, `false`, `{}`, `[]`, an empty text) has
/// no effect in Nublado either.
pub(crate) fn ignore(section: &mut Section<'_>, keys: &[(&'static str, &str)]) {
    for (key, instead) in keys {
        if has_content(section, key) {
            section.warning(key, &format!("has no effect; {instead}"));
        }
    }
}

fn has_content(section: &mut Section<'_>, key: &'static str) -> bool {
    match section.optional::<Value>(key) {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::Object(entries)) => !entries.is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::String(text)) => !text.is_empty(),
        Some(_) => true,
    }
}

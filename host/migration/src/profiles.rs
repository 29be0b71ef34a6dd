//! `profile_list`.

use serde_json::{Map, Value};

use crate::draft::{Draft, is_nothing};
use crate::settings;
use crate::values_file::below;

const PROFILE: [&str; 6] = ["allowed_groups", "default", "description", "display_name", "slug", "groups"];
const OPTION: [&str; 4] = ["allowed_groups", "description", "display_name", "slug"];
const CHOICE: [&str; 5] = ["allowed_groups", "default", "description", "display_name", "slug"];
const UNLISTED: [&str; 7] = [
    "allowed_groups",
    "description_in_choices",
    "display_name",
    "display_name_in_choices",
    "enabled",
    "validation_message",
    "validation_regex",
];

/// Converts the profiles; sites write them as a map, too, whose values are the list in the order of the keys.
pub(crate) fn list(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if is_nothing(value) {
        return draft.not_needed(path, "has no value");
    }
    draft.carried(path, "policies[0].config.profile_list");
    let profiles: Vec<(String, &Value)> = match value {
        Value::Array(items) => {
            items.iter().enumerate().map(|(at, item)| (format!("{path}[{at}]"), item)).collect()
        }
        Value::Object(entries) => entries.iter().map(|(key, item)| (below(path, key), item)).collect(),
        _ => {
            return draft.open(
                path,
                "is no list of profiles",
                "Write a list to `profile_list` of the policy",
            );
        }
    };
    let converted = profiles.iter().map(|(path, profile)| convert(draft, path, profile)).collect();
    draft.policy.insert("profile_list".to_owned(), converted);
    let teams = teams(value);
    if !teams.is_empty() {
        draft.open(
            &format!("{path}[*].allowed_groups"),
            &format!("are teams, such as `{}`, which sites look up in the Hub's `auth_state`", teams[0]),
            "Here they are groups of JupyterHub with these names: let the authenticator manage groups (for GitHub \
             `manage_groups: true` and `auth_state_groups_key`), and see that a user's groups are listed in the Hub",
        );
    }
}

fn convert(draft: &mut Draft<'_>, path: &str, profile: &Value) -> Value {
    let mut kept = known(draft, path, profile, &PROFILE, &["kubespawner_override", "profile_options"]);
    overrides(draft, path, profile, &mut kept);
    let options = map(draft, path, profile, "profile_options");
    let mut converted = Map::new();
    for (name, value) in options.into_iter().flatten() {
        let path = below(&below(path, "profile_options"), name);
        converted.insert(name.clone(), option(draft, &path, value));
    }
    if !converted.is_empty() {
        kept.insert("profile_options".to_owned(), Value::Object(converted));
    }
    Value::Object(kept)
}

fn option(draft: &mut Draft<'_>, path: &str, option: &Value) -> Value {
    let others = ["choices", "dynamic_image_building", "unlisted_choice"];
    let mut kept = known(draft, path, option, &OPTION, &others);
    let building = option.get("dynamic_image_building").and_then(|building| building.get("enabled"));
    if building == Some(&Value::Bool(true)) {
        draft.open(
            &below(path, "dynamic_image_building"),
            "let users build an image from a repository with a BinderHub",
            "This service builds no images. Users choose from the list, or type an image if `unlisted_choice` is enabled; \
             build images elsewhere, such as with repo2docker in a pipeline, and let `image_repositories` offer them",
        );
    } else if option.get("dynamic_image_building").is_some() {
        draft.not_needed(&below(path, "dynamic_image_building"), "is not enabled");
    }
    let mut choices = Map::new();
    for (name, value) in map(draft, path, option, "choices").into_iter().flatten() {
        let path = below(&below(path, "choices"), name);
        let mut choice = known(draft, &path, value, &CHOICE, &["kubespawner_override"]);
        overrides(draft, &path, value, &mut choice);
        choices.insert(name.clone(), Value::Object(choice));
    }
    if !choices.is_empty() {
        kept.insert("choices".to_owned(), Value::Object(choices));
    }
    if let Some(value) = option.get("unlisted_choice") {
        let path = below(path, "unlisted_choice");
        let mut unlisted = known(draft, &path, value, &UNLISTED, &["kubespawner_override"]);
        overrides(draft, &path, value, &mut unlisted);
        kept.insert("unlisted_choice".to_owned(), Value::Object(unlisted));
    }
    Value::Object(kept)
}

/// The map at a key; anything else is reported.
fn map<'a>(draft: &mut Draft<'_>, path: &str, value: &'a Value, key: &str) -> Option<&'a Map<String, Value>> {
    let found = value.get(key).filter(|found| !found.is_null());
    if found.is_some_and(|found| !found.is_object()) {
        draft.wrong_form(&below(path, key));
    }
    found.and_then(Value::as_object)
}

/// Keeps the keys that the policy knows, and reports all but `others`.
fn known(
    draft: &mut Draft<'_>,
    path: &str,
    value: &Value,
    known: &[&str],
    others: &[&str],
) -> Map<String, Value> {
    if !value.is_object() {
        draft.wrong_form(path);
    }
    let mut kept = Map::new();
    for (key, value) in value.as_object().into_iter().flatten() {
        if known.contains(&key.as_str()) {
            kept.insert(key.clone(), value.clone());
        } else if !others.contains(&key.as_str()) {
            draft.open(
                &below(path, key),
                "is no key that KubeSpawner or its form extension knows",
                "If code of yours reads it, look there; otherwise it had no effect",
            );
        }
    }
    kept
}

fn overrides(draft: &mut Draft<'_>, path: &str, value: &Value, kept: &mut Map<String, Value>) {
    if let Some(value) = value.get("kubespawner_override") {
        let converted = settings::overrides(draft, &below(path, "kubespawner_override"), value);
        kept.insert("kubespawner_override".to_owned(), converted);
    }
}

/// The groups that are written as `org:team`.
fn teams(value: &Value) -> Vec<String> {
    match value {
        Value::Object(entries) => entries
            .iter()
            .flat_map(|(key, value)| if key == "allowed_groups" { names(value) } else { teams(value) })
            .collect(),
        Value::Array(items) => items.iter().flat_map(teams).collect(),
        _ => Vec::new(),
    }
}

fn names(groups: &Value) -> Vec<String> {
    let names = groups.as_array().into_iter().flatten().filter_map(Value::as_str);
    names.filter(|name| name.contains(':')).map(str::to_owned).collect()
}

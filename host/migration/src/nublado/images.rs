//! The sections `images` and `dropdownMenu`.

use serde_json::{Value, json};

use super::duration;
use super::reader::Reader;
use super::shape::{self, Shape, to_policy};
use crate::draft::is_nothing;

const TYPES: [&str; 5] = ["release", "weekly", "daily", "releaseCandidate", "experimental"];

pub(super) fn source_and_prepull(reader: &mut Reader<'_>, path: &str, value: &Value) {
    for (path, key, value) in reader.entries(path, value) {
        let of_policy = format!("images.{key}");
        match key {
            _ if is_nothing(value) => reader.not_needed(&path, "has no value"),
            "source" => source(reader, &path, value),
            "refreshInterval" => span(reader, &path, value, "images.refresh_every"),
            "prepullTimeout" => span(reader, &path, value, "images.prepull.time_limit"),
            "dockerCredentialsPath" => credentials(reader, &path),
            "recommendedTag" | "numReleases" | "numWeeklies" | "numDailies" | "cycle" => {
                to_policy(reader, &path, &of_policy, value, &Shape::Scalar);
            }
            "pin" | "aliasTags" => {
                to_policy(reader, &path, &of_policy, value, &Shape::List);
            }
            _ => reader.unknown(&path),
        }
    }
}

fn source(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let mut value = value.clone();
    if let Some(source) = value.as_object_mut()
        && source.remove("credentialsPath").is_some_and(|path| !is_nothing(&path))
    {
        credentials(reader, &format!("{path}.credentialsPath"));
    }
    let Some(source) = to_policy(reader, path, "images.source", &value, &shape::SOURCE) else { return };
    let text = |key: &str| source.get(key).and_then(Value::as_str);
    let repository = match (text("type"), text("repository")) {
        (Some("docker"), Some(repository)) => {
            format!("{}/{repository}", text("registry").unwrap_or("docker.io"))
        }
        (Some("google"), Some(repository)) => match (text("location"), text("projectId"), text("image")) {
            (Some(location), Some(project), Some(image)) => {
                format!("{location}-docker.pkg.dev/{project}/{repository}/{image}")
            }
            _ => return reader.other_form(path),
        },
        _ => return reader.other_form(path),
    };
    reader.set_service("images.repositories", json!([{"name": repository}]));
    reader.carried(path, "images.repositories, and policies[rubin].config.images.source", "");
}

fn credentials(reader: &mut Reader<'_>, path: &str) {
    reader.open(
        path,
        "was the file with logins of registries",
        "Name the Secret with it in `secrets.registryLogins` of the chart's values",
    );
}

/// Carries a duration over to a key of the service.
pub(super) fn span(reader: &mut Reader<'_>, path: &str, value: &Value, to: &str) {
    match duration::seconds(value) {
        Some(seconds) => {
            reader.set_service(to, duration::span(seconds).into());
            reader.carried(path, to, "");
        }
        None => reader.other_form(path),
    }
}

pub(super) fn dropdown(reader: &mut Reader<'_>, path: &str, value: &Value) {
    for (path, key, value) in reader.entries(path, value) {
        match key {
            _ if is_nothing(value) => reader.not_needed(&path, "has no value"),
            _ if TYPES.contains(&key) => {
                let filter = to_policy(reader, &path, &format!("dropdownMenu.{key}"), value, &shape::FILTER);
                if filter.is_some_and(|filter| filter.get("number") == Some(&json!(0))) {
                    reader.open(
                        &format!("{path}.number"),
                        "was no limit in Nublado, and lists none of this type here",
                        "Remove it from the new configuration, or keep it",
                    );
                }
            }
            _ => reader.unknown(&path),
        }
    }
}

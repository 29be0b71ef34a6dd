//! Rules of a pod's volumes.

use super::json::{items, text};
use crate::apiserver::admission::names;
use crate::apiserver::failure::Cause;
use crate::apiserver::metadata::Document;
use serde_json::Value;
use std::collections::HashSet;

/// The names of the pod's volumes, whose rules are checked.
pub(super) fn check_all<'a>(spec: &'a Document, causes: &mut Vec<Cause>) -> HashSet<&'a str> {
    let mut known = HashSet::new();
    for (i, volume) in items(spec.get("volumes")).enumerate() {
        let (path, name) = (format!("spec.volumes[{i}].name"), text(volume, "name"));
        if name.is_empty() {
            causes.push(Cause::required(path, ""));
        } else if let Some(why) = names::label_error(name) {
            causes.push(Cause::invalid(path, name, &why));
        } else if !known.insert(name) {
            causes.push(Cause::duplicate(path, name));
        }
        check_source(volume, &format!("spec.volumes[{i}]"), causes);
    }
    known
}

fn check_source(volume: &Value, path: &str, causes: &mut Vec<Cause>) {
    let sources =
        volume.as_object().into_iter().flatten().map(|(kind, _)| kind).filter(|kind| *kind != "name");
    for second in sources.skip(1) {
        let why = "may not specify more than 1 volume type";
        causes.push(Cause::forbidden(format!("{path}.{second}"), why));
    }
    for (kind, field) in [
        ("secret", "secretName"),
        ("configMap", "name"),
        ("persistentVolumeClaim", "claimName"),
        ("nfs", "server"),
        ("nfs", "path"),
        ("hostPath", "path"),
    ] {
        if volume.get(kind).is_some_and(|source| text(source, field).is_empty()) {
            causes.push(Cause::required(format!("{path}.{kind}.{field}"), ""));
        }
    }
    if let Some(at) = volume.get("nfs").map(|nfs| text(nfs, "path"))
        && !at.is_empty()
        && !at.starts_with('/')
    {
        causes.push(Cause::invalid(format!("{path}.nfs.path"), at, "must be an absolute path"));
    }
    if let Some(at) = volume.get("hostPath").map(|host| text(host, "path"))
        && at.split('/').any(|part| part == "..")
    {
        causes.push(Cause::invalid(format!("{path}.hostPath.path"), at, "must not contain '..'"));
    }
}

//! `singleuser.storage` and `singleuser.extraFiles`: volumes and their mounts.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::becomes::plain_text;
use crate::draft::{Draft, is_nothing};
use crate::settings;
use crate::values_file::below;

const VOLUMES: &str = "policies[0].config.kubespawner.volumes";
const MOUNTS: &str = "policies[0].config.kubespawner.volume_mounts";

/// Converts the home of each lab, and further volumes.
pub(crate) fn storage(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if !value.is_object() {
        return draft.wrong_form(path);
    }
    let of = |place: &str| {
        place.split('.').try_fold(value, |value, key| value.get(key)).cloned().unwrap_or_default()
    };
    let kind = plain_text(&of("type"));
    let (volume, sub_path) = match kind.as_str() {
        "dynamic" => {
            let template = plain_text(&of("dynamic.volumeNameTemplate"));
            draft.renamed = Some((template, "home".to_owned()));
            draft.set("storage_pvc_ensure", true.into());
            for (key, setting) in [
                ("capacity", "storage_capacity"),
                ("dynamic.storageClass", "storage_class"),
                ("dynamic.storageAccessModes", "storage_access_modes"),
            ] {
                let value = of(key);
                if !is_nothing(&value) {
                    draft.set(setting, value);
                }
                report(draft, &below(path, key), &format!("policies[0].config.kubespawner.{setting}"));
            }
            if let Some(name) = of("dynamic.pvcNameTemplate").as_str().filter(|name| !name.is_empty()) {
                draft.set_service("names.pvc", name.into());
            }
            report(draft, &below(path, "dynamic.pvcNameTemplate"), "names.pvc");
            report(draft, &below(path, "dynamic.volumeNameTemplate"), VOLUMES);
            (Some(json!({"claimName": "{pvc_name}"})), of("dynamic.subPath"))
        }
        "static" => {
            let claim = of("static.pvcName");
            if is_nothing(&claim) {
                draft.open(
                    &below(path, "static.pvcName"),
                    "names no claim, so labs had no home that stays",
                    "Add a volume and its mount to `kubespawner` of the policy",
                );
                (None, Value::Null)
            } else {
                report(draft, &below(path, "static.pvcName"), VOLUMES);
                report(draft, &below(path, "static.subPath"), MOUNTS);
                if depends_on_scheme(&plain_text(&of("static.subPath"))) {
                    draft.open(
                    &below(path, "static.subPath"),
                    "names each user's folder in one volume, by a rule that changed with release 4 of the chart",
                    "Compare the folders with `wasmspawner names`; if the site has run with release 3 or older, write \
                     `names.scheme: escape`, or users get the folders of others",
                );
                }
                (Some(json!({"claimName": claim})), of("static.subPath"))
            }
        }
        _ => (None, Value::Null),
    };
    if matches!(kind.as_str(), "dynamic" | "static" | "none") {
        report(draft, &below(path, "type"), VOLUMES);
    } else {
        draft.open(
            &below(path, "type"),
            "is no type of storage of the chart",
            "Labs have no home until you give them one",
        );
    }
    let home = volume.is_some();
    if let Some(claim) = volume {
        let mut mount = json!({"name": "home", "mountPath": of("homeMountPath")});
        if !is_nothing(&sub_path) {
            mount["subPath"] = sub_path;
        }
        draft.extend("volumes", [json!({"name": "home", "persistentVolumeClaim": claim})]);
        draft.extend("volume_mounts", [mount]);
    }
    if home {
        for key in ["homeMountPath", "dynamic.subPath"] {
            report(draft, &below(path, key), MOUNTS);
        }
    }
    for (key, setting) in [("extraVolumes", "volumes"), ("extraVolumeMounts", "volume_mounts")] {
        let value = of(key);
        let added = settings::cleaned(draft, &below(path, key), setting, &value);
        let added = match added {
            Value::Array(items) => items,
            Value::Object(entries) => entries.into_iter().map(|(_, value)| value).collect(),
            _ => Vec::new(),
        };
        draft.extend(setting, added);
        report(draft, &below(path, key), &format!("policies[0].config.kubespawner.{setting}"));
    }
    let labels = of("extraLabels");
    if !is_nothing(&labels) {
        draft.set("storage_extra_labels", labels);
    }
    report(draft, &below(path, "extraLabels"), "policies[0].config.kubespawner.storage_extra_labels");
    rest(draft, path, value, &kind);
}

/// True if a template has a field whose value depends on the scheme of slugs.
fn depends_on_scheme(template: &str) -> bool {
    let fields =
        template.split('{').skip(1).map(|rest| rest.split(['}', ':', '!', '.']).next().unwrap_or_default());
    let same =
        ["escaped_username", "unescaped_username", "escaped_servername", "unescaped_servername", "userid"];
    fields.filter(|field| !field.is_empty()).any(|field| !same.contains(&field))
}

/// Reports a key that a file has.
fn report(draft: &mut Draft<'_>, path: &str, to: &str) {
    if draft.is_given(path) {
        draft.carried(path, to);
    }
}

/// Reports the keys of other types of storage, and unknown ones.
fn rest(draft: &mut Draft<'_>, path: &str, value: &Value, kind: &str) {
    const KNOWN: [&str; 8] = [
        "type",
        "capacity",
        "homeMountPath",
        "extraVolumes",
        "extraVolumeMounts",
        "extraLabels",
        "static",
        "dynamic",
    ];
    for (key, value) in value.as_object().into_iter().flatten() {
        let path = below(path, key);
        let of_another = match key.as_str() {
            "static" | "dynamic" => key != kind,
            "capacity" => kind != "dynamic",
            "homeMountPath" => kind == "none",
            _ => false,
        };
        if !KNOWN.contains(&key.as_str()) {
            draft.open(&path, "is no key of the chart that this program knows", "It has no counterpart here");
        } else if of_another && draft.is_given(&path) {
            draft.not_needed(&path, &format!("has no effect with `type: {kind}`"));
        } else if *key == kind && !value.is_object() {
            draft.open(&path, "is not of the form that the chart takes", "Look up what it was meant to do");
        } else if *key == kind {
            let known = [
                "pvcName",
                "subPath",
                "storageClass",
                "pvcNameTemplate",
                "volumeNameTemplate",
                "storageAccessModes",
            ];
            for unknown in value.as_object().into_iter().flatten().map(|(key, _)| key) {
                if !known.contains(&unknown.as_str()) {
                    let path = below(&path, unknown);
                    draft.open(
                        &path,
                        "is no key of the chart that this program knows",
                        "It has no counterpart here",
                    );
                }
            }
        }
    }
}

/// Reads the mode of a file: a number, or a text in octal digits.
fn mode(value: &Value) -> Option<u64> {
    let octal = |text: &str| u64::from_str_radix(text.trim_start_matches("0o"), 8).ok();
    value.as_u64().or_else(|| value.as_str().and_then(octal)).filter(|mode| *mode <= 0o777)
}

/// Converts files: the chart goes on making a Secret of them in the Hub's namespace, where labs are, too. So their content,
/// which may be a credential, is in no configuration.
pub(crate) fn files(draft: &mut Draft<'_>, path: &str, value: &Value) {
    /// The mode of files in a Secret, as Kubernetes sets it.
    const USUAL: u64 = 0o644;
    let mut modes: BTreeMap<u64, Vec<Value>> = BTreeMap::new();
    for (name, file) in value.as_object().into_iter().flatten() {
        let path = below(path, name);
        let Some(place) = file.get("mountPath").and_then(Value::as_str) else {
            draft.open(
                &path,
                "has no `mountPath`, without which the chart is not installed",
                "Remove the file, or give it one",
            );
            continue;
        };
        let mode = file.get("mode").map_or(Some(USUAL), mode);
        let Some(mode) = mode else {
            draft.open(&path, "has a `mode` that is no number", "Write it as a number, such as `0600`");
            continue;
        };
        let volume = if mode == USUAL { "files".to_owned() } else { format!("files-{mode:o}") };
        modes.entry(mode).or_default().push(json!({"key": name, "path": name}));
        draft.extend("volume_mounts", [json!({"name": volume, "mountPath": place, "subPath": name})]);
        let note = "The chart of JupyterHub goes on making the Secret `singleuser` of the files, which labs mount: leave the key \
                    in the Hub's values";
        draft.carried_with(&path, VOLUMES, note);
    }
    for (mode, items) in modes {
        let volume = if mode == USUAL { "files".to_owned() } else { format!("files-{mode:o}") };
        let mut secret = json!({"secretName": draft.hub.object("singleuser"), "items": items});
        if mode != USUAL {
            secret["defaultMode"] = mode.into();
        }
        draft.extend("volumes", [json!({"name": volume, "secret": secret})]);
    }
}

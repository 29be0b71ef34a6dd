//! The volumes of labs.

use serde_json::{Map, Value};

use super::reader::Reader;
use super::shape::{self, to_policy};

/// Keys of a volume that an older version of Nublado mounted by a claim of its own.
const OF_CLAIMS: [&str; 3] = ["accessModes", "resources", "storageClassName"];

pub(super) fn volumes(reader: &mut Reader<'_>, path: &str, value: &Value) {
    let Some(mut carried) = to_policy(reader, path, "lab.volumes", value, &shape::VOLUMES) else { return };
    let mut converted = Vec::new();
    for (at, volume) in carried.as_array_mut().into_iter().flatten().enumerate() {
        let Some(source) = volume.get_mut("source").and_then(Value::as_object_mut) else { continue };
        match source.get("type").and_then(Value::as_str) {
            Some("hostPath") => {
                let path = source.get("path").and_then(Value::as_str).unwrap_or_default();
                reader.grants.host_path.insert(path.to_owned());
            }
            Some("nfsPvc") => {
                as_nfs(source);
                converted.push(at);
            }
            _ => {}
        }
    }
    for at in converted {
        let note = "It was mounted by a volume claim of the user, which only passed on the address. It is mounted directly";
        let path = format!("{path}[{at}]");
        reader.carried(&path, &format!("policies[rubin].config.lab.volumes[{at}]"), note);
    }
    reader.set_policy("lab.volumes", carried);
}

fn as_nfs(source: &mut Map<String, Value>) {
    source.insert("type".to_owned(), "nfs".into());
    for key in OF_CLAIMS {
        source.remove(key);
    }
}

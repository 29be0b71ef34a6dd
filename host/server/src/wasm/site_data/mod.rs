//! Data of the site that policies read with `host.data`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wasmspawner_core::digest::Digest;

use super::errors::LoadErrorKind;
use crate::yaml_problem;

/// The largest file, in bytes.
const LARGEST: u64 = 1 << 20;

/// The data of one policy, by name.
pub(super) type SiteData = Arc<BTreeMap<String, Datum>>;

/// The content of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Datum {
    /// Differs where the content does.
    pub(super) version: String,
    /// The content as JSON.
    pub(super) json: String,
}

/// Reads all files of a policy.
pub(super) async fn read(files: &BTreeMap<String, PathBuf>) -> Result<SiteData, LoadErrorKind> {
    let mut data = BTreeMap::new();
    for (name, path) in files {
        let datum = read_file(path).await;
        let datum = datum.map_err(|problem| LoadErrorKind::Data {
            name: name.clone(),
            path: path.clone(),
            problem,
        })?;
        data.insert(name.clone(), datum);
    }
    Ok(Arc::new(data))
}

async fn read_file(path: &Path) -> Result<Datum, String> {
    let size = tokio::fs::metadata(path).await.map_err(|error| error.to_string())?.len();
    if size > LARGEST {
        return Err(format!("it has {size} bytes; the largest that is read has {LARGEST}"));
    }
    let text = tokio::fs::read_to_string(path).await.map_err(|error| error.to_string())?;
    parse(&text)
}

/// YAML, of which JSON is a part.
fn parse(text: &str) -> Result<Datum, String> {
    let value: serde_json::Value =
        serde_saphyr::from_str(text).map_err(|error| yaml_problem::in_one_line(&error))?;
    let json = value.to_string();
    Ok(Datum { version: Digest::of(json.as_bytes()).to_string(), json })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_content() {
        let json = parse("{\"teams\": [\"a\"]}").unwrap();
        assert_eq!(parse("# a comment\nteams: [a]").unwrap(), json);
        assert_ne!(parse("teams: [b]").unwrap().version, json.version);
        assert!(parse("teams: [a").is_err());
    }
}

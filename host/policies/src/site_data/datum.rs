use std::collections::{BTreeMap, HashSet};
use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use wasmspawner_core::values::digest::Digest;

use wasmspawner_files::yaml_problem;

/// The maximum size of a file or document, in bytes.
pub(super) const MAX_DOCUMENT_BYTES: usize = 1 << 20;

/// The maximum size of the content as JSON, in bytes: each line of CSV repeats the names of its columns.
const MAX_JSON_BYTES: usize = 8 << 20;
/// The maximum number of columns in CSV.
const MAX_COLUMNS: usize = 1_000;

/// The content of a file or a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Datum {
    /// The version of the content: the digest of its JSON.
    pub version: String,
    /// The content as JSON.
    pub json: String,
}

impl Datum {
    fn new(json: Json) -> Result<Self, String> {
        let json = String::from_utf8(json.0).map_err(|error| error.to_string())?;
        Ok(Self { version: Digest::sha256(json.as_bytes()).to_string(), json })
    }

    /// Reads YAML, and therefore also JSON.
    pub(super) fn from_yaml(text: &str) -> Result<Self, String> {
        let value: Value = serde_saphyr::from_str(text).map_err(|error| yaml_problem::in_one_line(&error))?;
        let mut json = Json::default();
        json.add(&value)?;
        Self::new(json)
    }

    /// Reads CSV. The first line has the names of the columns, and each other line becomes an object of texts.
    pub(super) fn from_csv(text: &str) -> Result<Self, String> {
        // Spreadsheets write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let names = reader.headers().map_err(|error| error.to_string())?.clone();
        if names.len() > MAX_COLUMNS {
            return Err(format!("has {} columns; at most {MAX_COLUMNS} are read", names.len()));
        }
        let mut known = HashSet::new();
        if let Some((at, name)) = names.iter().enumerate().find(|(_, name)| !known.insert(*name)) {
            let name: String = name.chars().take(80).collect();
            return Err(format!("column {} has the name {name:?} of an earlier one", at + 1));
        }
        let mut json = Json::default();
        let mut separator = "[";
        for line in reader.records() {
            let line = line.map_err(|error| error.to_string())?;
            json.text(separator)?;
            json.add(&names.iter().zip(&line).collect::<BTreeMap<_, _>>())?;
            separator = ",";
        }
        json.text(if separator == "[" { "[]" } else { "]" })?;
        Self::new(json)
    }
}

/// A writer of JSON, up to a size limit.
#[derive(Default)]
struct Json(Vec<u8>);

impl Json {
    fn text(&mut self, text: &str) -> Result<(), String> {
        self.write_all(text.as_bytes()).map_err(|error| error.to_string())
    }

    fn add(&mut self, value: &impl Serialize) -> Result<(), String> {
        serde_json::to_writer(self, value).map_err(|error| error.to_string())
    }
}

impl Write for Json {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > MAX_JSON_BYTES {
            return Err(io::Error::other(format!("is larger than {MAX_JSON_BYTES} bytes as JSON")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_content() {
        let json = Datum::from_yaml("{\"teams\": [\"a\"]}").unwrap();
        assert_eq!(Datum::from_yaml("# a comment\nteams: [a]").unwrap(), json);
        assert_ne!(Datum::from_yaml("teams: [b]").unwrap().version, json.version);
        assert!(Datum::from_yaml("teams: [a").is_err());
    }

    #[test]
    fn lines_of_csv_are_objects() {
        let read = Datum::from_csv("\u{feff}user, hours\nada, 40\n\"lovelace, a\",\"\"\n").unwrap();
        assert_eq!(read.json, r#"[{"hours":"40","user":"ada"},{"hours":"","user":"lovelace, a"}]"#);
        assert_eq!(Datum::from_csv("user,hours\n").unwrap().json, "[]");
        assert_eq!(Datum::from_csv("").unwrap().json, "[]");
    }

    /// A megabyte of CSV may become a hundred gigabytes of JSON, and comparing the names of many columns takes minutes.
    #[test]
    fn what_becomes_too_large_is_refused() {
        let long_name =
            format!("{}\n{}", "k".repeat(MAX_DOCUMENT_BYTES / 2), "x\n".repeat(MAX_DOCUMENT_BYTES / 4));
        assert!(Datum::from_csv(&long_name).unwrap_err().contains("as JSON"));
        let columns: Vec<String> = (0..200_000).map(|n| n.to_string()).collect();
        assert!(Datum::from_csv(&columns.join(",")).unwrap_err().contains("200000 columns"));
        let bells = format!("a: &a \"{}\"\nb: [{}]", "\\a".repeat(200_000), vec!["*a"; 90].join(","));
        assert!(Datum::from_yaml(&bells).is_err());
    }

    #[test]
    fn mistakes_in_csv_say_where_they_are() {
        let short = Datum::from_csv("user,hours\nada,40\neve\n").unwrap_err();
        assert!(short.contains("line: 3"), "{short}");
        assert_eq!(
            Datum::from_csv("user,hours,user\n").unwrap_err(),
            "column 3 has the name \"user\" of an earlier one"
        );
    }
}

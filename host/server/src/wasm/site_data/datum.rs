use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use wasmspawner_core::digest::Digest;

use crate::yaml_problem;

/// The largest file or document, in bytes.
pub(super) const LARGEST: usize = 1 << 20;

/// The content of a file or a document.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Datum {
    /// Differs where the content does.
    pub(crate) version: String,
    /// The content as JSON.
    pub(crate) json: String,
}

impl Datum {
    fn new(content: &Value) -> Self {
        let json = content.to_string();
        Self { version: Digest::of(json.as_bytes()).to_string(), json }
    }

    /// Reads YAML, of which JSON is a part.
    pub(super) fn from_yaml(text: &str) -> Result<Self, String> {
        let value = serde_saphyr::from_str(text).map_err(|error| yaml_problem::in_one_line(&error))?;
        Ok(Self::new(&value))
    }

    /// Reads CSV. Its first line has the names of its columns, and each other line becomes an object of texts.
    pub(super) fn from_csv(text: &str) -> Result<Self, String> {
        // Spreadsheets write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(text.as_bytes());
        let names = reader.headers().map_err(|error| error.to_string())?.clone();
        if let Some((at, name)) =
            names.iter().enumerate().find(|(at, name)| names.iter().take(*at).any(|other| other == *name))
        {
            return Err(format!("column {} has the name {name:?} of an earlier one", at + 1));
        }
        let lines = reader.records().map(|line| {
            let line = line.map_err(|error| error.to_string())?;
            let fields = names.iter().zip(&line).map(|(name, value)| (name.to_owned(), value.into()));
            Ok(Value::Object(fields.collect::<Map<_, _>>()))
        });
        Ok(Self::new(&Value::Array(lines.collect::<Result<_, String>>()?)))
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

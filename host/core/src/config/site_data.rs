//! `policies[].data`: data of the site, such as who is in which team, that policies read.

use std::fmt;
use std::path::PathBuf;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::InvalidSetting;

/// Where data of the site comes from: a file, or a document that another service has. YAML, JSON, or CSV with a line of names,
/// of which each other line becomes an object; at most 1 MiB.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub enum DataSource {
    /// A file, relative to the configuration file. Its name ends with `.csv` if it is CSV. A link that leads out of its folder is
    /// not followed. A change is noticed within a few seconds.
    File(PathBuf),
    /// A document that another service has.
    Document(DocumentConfig),
}

impl DataSource {
    /// The document, if it is one.
    pub fn document(&self) -> Option<&DocumentConfig> {
        match self {
            Self::Document(document) => Some(document),
            Self::File(_) => None,
        }
    }
}

/// A document that another service has. It is read at the start, and again and again. While it cannot be read, or used,
/// policies have what was read before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentConfig {
    /// The URL of the document. It begins with `https://`; `http://` is allowed on this machine. Redirections are not followed.
    /// A document is CSV if its path ends with `.csv`, or if it is sent as `text/csv`.
    pub url: String,
    /// How often it is read; 10s to 1 day.
    #[schemars(with = "String")]
    #[serde(default = "one_minute", deserialize_with = "super::span::parse")]
    pub every: SignedDuration,
    /// A file with a token that is sent along as a bearer token, relative to the configuration file. Only the service may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
}

fn one_minute() -> SignedDuration {
    SignedDuration::from_mins(1)
}

impl<'de> Deserialize<'de> for DataSource {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Source;

        impl<'de> Visitor<'de> for Source {
            type Value = DataSource;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the path of a file, or `url` and what belongs to it")
            }

            fn visit_str<E>(self, path: &str) -> Result<DataSource, E> {
                Ok(DataSource::File(path.into()))
            }

            fn visit_map<M: MapAccess<'de>>(self, map: M) -> Result<DataSource, M::Error> {
                DocumentConfig::deserialize(MapAccessDeserializer::new(map)).map(DataSource::Document)
            }
        }

        deserializer.deserialize_any(Source)
    }
}

impl DataSource {
    /// The files that it names.
    pub fn files(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        match self {
            Self::File(path) => Some(path),
            Self::Document(document) => document.token_file.as_mut(),
        }
        .into_iter()
    }

    pub(super) fn check(&self, key: &str) -> Vec<InvalidSetting> {
        let Self::Document(DocumentConfig { url, every, token_file: _ }) = self else { return Vec::new() };
        let host = url.strip_prefix("https://").or_else(|| {
            let rest = url.strip_prefix("http://")?;
            let host = rest.split(['/', ':', '?']).next().unwrap_or_default();
            matches!(host, "127.0.0.1" | "localhost").then_some(rest)
        });
        let host = host.and_then(|rest| rest.split(['/', '?']).next());
        let url = (!host.is_some_and(|host| !host.is_empty() && !host.contains(['@', '#', ' ']))).then(|| {
            let wrong = "is no URL of a document; it begins with https://, or with http://127.0.0.1 on this machine, and has no credentials";
            InvalidSetting::new(format!("{key}.url"), format!("{url:?} {wrong}"))
        });
        let limits = SignedDuration::from_secs(10)..=SignedDuration::from_hours(24);
        let every = (!limits.contains(every)).then(|| {
            InvalidSetting::new(
                format!("{key}.every"),
                format!("{every:#} is out of range; write 10s to 24h"),
            )
        });
        url.into_iter().chain(every).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(yaml: &str) -> Result<DataSource, String> {
        serde_saphyr::from_str(yaml).map_err(|error| error.to_string())
    }

    #[test]
    fn data_is_in_a_file_or_a_document() {
        assert_eq!(source("teams.yaml").unwrap(), DataSource::File("teams.yaml".into()));
        let document = source("url: https://ids.example.org/teams.csv").unwrap();
        assert!(document.check("data.teams").is_empty());
        let DataSource::Document(document) = document else { panic!("{document:?}") };
        assert_eq!((document.every, document.token_file), (SignedDuration::from_mins(1), None));
        let unknown = source("{url: 'https://ids.example.org/teams.csv', often: 5s}").unwrap_err();
        assert!(unknown.contains("often"), "{unknown}");
        assert!(source("[]").unwrap_err().contains("the path of a file"));
    }

    #[test]
    fn a_document_is_read_with_encryption_and_not_too_often() {
        for (wrong, key) in [
            ("{url: 'http://ids.example.org/teams'}", "data.teams.url"),
            ("{url: 'https://'}", "data.teams.url"),
            ("{url: 'https://me:secret@ids.example.org/'}", "data.teams.url"),
            ("{url: 'file:///etc/passwd'}", "data.teams.url"),
            ("{url: 'https://ids.example.org/teams', every: 1s}", "data.teams.every"),
            ("{url: 'http://127.0.0.1:80/teams', every: 25h}", "data.teams.every"),
        ] {
            let problems = source(wrong).unwrap().check("data.teams");
            let [problem] = problems.as_slice() else { panic!("{wrong}: {problems:?}") };
            assert!(problem.to_string().starts_with(key), "{problem}");
        }
    }
}

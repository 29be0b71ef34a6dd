use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Tag;
use crate::values::digest::Digest;

/// The registry of names without one, as container runtimes write it.
const DOCKER_HUB: &str = "docker.io";

/// The largest length of a repository's name with its registry (OCI Distribution Specification 1.1).
const MAX_REPOSITORY_LENGTH: usize = 255;

/// A repository of images in a registry, such as `registry.example.org/site/lab`. Docker Hub's short names are written
/// out, as container runtimes do it: `python` is `docker.io/library/python`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Repository {
    registry: String,
    path: String,
}

/// The name of an image: its repository, with a tag, a digest or both.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImageReference {
    /// The repository.
    pub repository: Repository,
    /// The tag; `latest` applies if there is neither a tag nor a digest.
    pub tag: Option<Tag>,
    /// The digest.
    pub digest: Option<Digest>,
}

/// Text that is not the name of a repository or an image.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not {expected}")]
pub struct InvalidReference {
    text: String,
    expected: &'static str,
}

impl Repository {
    /// Returns the registry: a host, with a port if it is not the default one.
    pub fn registry(&self) -> &str {
        &self.registry
    }

    /// Returns the name of the repository in its registry.
    pub fn path(&self) -> &str {
        &self.path
    }

    fn parse(text: &str) -> Option<Self> {
        let (registry, path) = match text.split_once('/') {
            Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path),
            _ => (DOCKER_HUB, text),
        };
        let registry = if matches!(registry, "index.docker.io" | "registry-1.docker.io") {
            DOCKER_HUB
        } else {
            registry
        };
        let short = registry == DOCKER_HUB && !path.contains('/');
        let path = if short { format!("library/{path}") } else { path.to_owned() };
        let host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
        let valid = registry.chars().all(host)
            && path.split('/').all(is_component)
            && registry.len() + path.len() < MAX_REPOSITORY_LENGTH;
        valid.then(|| Self { registry: registry.to_owned(), path })
    }
}

/// Returns true for a component of a repository's name: lower-case letters and digits, separated by `.`, `-`, `_` or
/// `__`.
fn is_component(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(|c| alphanumeric(c) || matches!(c, '.' | '-' | '_'))
}

impl FromStr for Repository {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        const EXPECTED: &str =
            "a repository such as `registry.example.org/site/lab`, without a tag and without `https://`";
        Self::parse(text).ok_or_else(|| InvalidReference { text: text.to_owned(), expected: EXPECTED })
    }
}

impl TryFrom<String> for Repository {
    type Error = InvalidReference;

    fn try_from(text: String) -> Result<Self, InvalidReference> {
        text.parse()
    }
}

impl From<Repository> for String {
    fn from(repository: Repository) -> Self {
        repository.to_string()
    }
}

impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.registry, self.path)
    }
}

impl FromStr for ImageReference {
    type Err = InvalidReference;

    fn from_str(text: &str) -> Result<Self, InvalidReference> {
        const EXPECTED: &str = "an image such as `registry.example.org/site/lab:1.0` or `...@sha256:...`";
        let read = || {
            let (name, digest) = match text.split_once('@') {
                Some((name, digest)) => (name, Some(digest.parse().ok()?)),
                None => (text, None),
            };
            // A colon before the last slash introduces the port of the registry, not a tag.
            let (name, tag) = match name.rsplit_once(':') {
                Some((before, tag)) if !tag.contains('/') => (before, Some(Tag::parse(tag).ok()?)),
                _ => (name, None),
            };
            Some(Self { repository: Repository::parse(name)?, tag, digest })
        };
        read().ok_or_else(|| InvalidReference { text: text.to_owned(), expected: EXPECTED })
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.repository)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        self.digest.map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

impl Serialize for ImageReference {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl ImageReference {
    /// Returns the tag, or `latest` if the reference has none.
    pub fn tag(&self) -> &str {
        self.tag.as_ref().map_or("latest", Tag::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_written_out_as_container_runtimes_do_it() {
        for (text, expected) in [
            ("python", "docker.io/library/python"),
            ("jupyter/base-notebook", "docker.io/jupyter/base-notebook"),
            ("index.docker.io/jupyter/base", "docker.io/jupyter/base"),
            ("docker.io/python", "docker.io/library/python"),
            ("localhost/lab", "localhost/lab"),
            ("registry:5000/site/lab", "registry:5000/site/lab"),
            ("quay.io/a/b/c", "quay.io/a/b/c"),
            ("[::1]:5000/lab", "[::1]:5000/lab"),
        ] {
            assert_eq!(text.parse::<Repository>().unwrap().to_string(), expected);
        }
        for text in [
            "",
            "https://quay.io/a",
            "Lab",
            "quay.io/",
            "quay.io//a",
            "quay.io/a:1",
            "quay.io/-a",
            "a b",
            "quay.io/../a",
        ] {
            let error = text.parse::<Repository>().unwrap_err().to_string();
            assert!(error.contains("is not a repository such as"), "{error}");
        }
    }

    #[test]
    fn an_image_has_a_tag_or_a_digest_or_both() {
        let digest = format!("sha256:{}", "0".repeat(64));
        for (text, tag, has_digest) in [
            ("quay.io/lab".to_owned(), "latest", false),
            ("quay.io/lab:1.0".to_owned(), "1.0", false),
            ("localhost:5000/lab".to_owned(), "latest", false),
            ("localhost:5000/lab:w_2026_40".to_owned(), "w_2026_40", false),
            (format!("quay.io/lab:1.0@{digest}"), "1.0", true),
            (format!("lab@{digest}"), "latest", true),
        ] {
            let parsed: ImageReference = text.parse().unwrap();
            assert_eq!((parsed.tag(), parsed.digest.is_some()), (tag, has_digest), "{text}");
            assert_eq!(parsed.to_string().parse::<ImageReference>().unwrap(), parsed);
        }
        for text in ["", "lab:", "lab:1 0", "lab@sha256:1", "lab:-1", "lab@"] {
            assert!(text.parse::<ImageReference>().is_err(), "{text}");
        }
    }
}

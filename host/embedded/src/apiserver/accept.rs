//! The form in which a client wants objects (`Accept`).

use super::failure::Failure;

/// A form of an answer about objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accept {
    /// The objects themselves.
    Json,
    /// A `Table` of `meta.k8s.io/v1` for humans, as `kubectl get` asks for.
    Table,
    /// Only the metadata: `PartialObjectMetadata` of `meta.k8s.io/v1`.
    Metadata,
}

impl Accept {
    /// The first form in the client's list that is served here. No header means JSON.
    pub(super) fn negotiate(header: Option<&str>) -> Result<Self, Failure> {
        let Some(header) = header else { return Ok(Self::Json) };
        header.split(',').find_map(Self::read).ok_or_else(Failure::not_acceptable)
    }

    fn read(range: &str) -> Option<Self> {
        let mut parts = range.split(';').map(str::trim);
        if !matches!(parts.next()?, "application/json" | "application/*" | "*/*" | "") {
            return None;
        }
        let parameters: Vec<(&str, &str)> = parts.filter_map(|p| p.split_once('=')).collect();
        let get = |name: &str| parameters.iter().find(|(key, _)| *key == name).map(|(_, value)| *value);
        match (get("as"), get("g"), get("v")) {
            (None, ..) => Some(Self::Json),
            (Some("Table"), Some("meta.k8s.io"), Some("v1")) => Some(Self::Table),
            (
                Some("PartialObjectMetadata" | "PartialObjectMetadataList"),
                Some("meta.k8s.io"),
                Some("v1"),
            ) => Some(Self::Metadata),
            _ => None,
        }
    }
}

//! A request about objects, with all inputs of its answer.

use super::Server;
use super::failure::Failure;
use super::resource::Resource;
use super::store::Key;
use bytes::Bytes;
use std::str::FromStr;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

/// A request about objects of one kind.
pub(super) struct Call {
    pub(super) server: Arc<Server>,
    pub(super) resource: Arc<Resource>,
    /// The namespace in the path; `None` for cluster-wide kinds and requests about all namespaces.
    pub(super) namespace: Option<String>,
    pub(super) query: Query,
    pub(super) accept: Accept,
    /// Cancelled when the listener is shut down, which ends its long-running answers.
    pub(super) shutdown: CancellationToken,
    pub(super) content_type: String,
    pub(super) body: Bytes,
}

impl Call {
    /// Returns the key under which the object `name` is stored.
    pub(super) fn key(&self, name: &str) -> Key {
        self.resource.key(self.namespace.as_deref(), name)
    }

    /// Returns the namespace in the path. Fails if it is missing and the kind is namespaced, because the creation of an
    /// object needs it.
    pub(super) fn required_namespace(&self) -> Result<Option<&str>, Failure> {
        match (&self.namespace, self.resource.namespaced) {
            (None, true) => {
                Err(Failure::bad_request("an empty namespace may not be set during creation or update"))
            }
            (namespace, _) => Ok(namespace.as_deref()),
        }
    }
}

/// A form of an answer about objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Accept {
    /// The objects themselves.
    Json,
    /// A `Table` of `meta.k8s.io/v1` for humans, as `kubectl get` requests it.
    Table,
    /// Only the metadata: `PartialObjectMetadata` of `meta.k8s.io/v1`.
    Metadata,
}

impl Accept {
    /// Chooses the first form in the client's list that is served here. No header means JSON.
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

/// The decoded pairs of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Parses the part of a URI after `?`.
    pub(super) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    /// Returns the value of `name`, unless it is missing or empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// True if `name` is switched on. As in Kubernetes, `?watch` alone and `?watch=1` both do so.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .is_some_and(|(_, value)| !matches!(value.as_str(), "false" | "0" | "False"))
    }

    /// Parses the value of `name` as a number or another type with a textual form.
    pub(super) fn value<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        self.text(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    Failure::bad_request(format!("query parameter {name}: cannot read {text:?}"))
                })
            })
            .transpose()
    }

    /// True if nothing may be stored (`dryRun=All`).
    pub(super) fn dry_run(&self) -> Result<bool, Failure> {
        match self.text("dryRun") {
            None => Ok(false),
            Some("All") => Ok(true),
            Some(other) => {
                Err(Failure::bad_request(format!("dryRun: {other:?} is not supported, use \"All\"")))
            }
        }
    }
}

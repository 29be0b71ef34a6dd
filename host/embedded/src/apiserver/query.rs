//! The query of a request, read by name.

use super::failure::Failure;
use std::str::FromStr;

/// The decoded pairs of a query.
#[derive(Clone, Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the part of a URI after `?`.
    pub(super) fn parse(query: Option<&str>) -> Self {
        let pairs = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
        Self(pairs.map(|(k, v)| (k.into_owned(), v.into_owned())).collect())
    }

    /// The value of `name`, unless it is missing or empty.
    pub(super) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, value)| key == name && !value.is_empty()).map(|(_, value)| value.as_str())
    }

    /// Whether `name` is switched on. As with Kubernetes, `?watch` alone and `?watch=1` do.
    pub(super) fn flag(&self, name: &str) -> bool {
        self.0
            .iter()
            .find(|(key, _)| key == name)
            .is_some_and(|(_, value)| !matches!(value.as_str(), "false" | "0" | "False"))
    }

    /// The value of `name` as a number or another type that has a textual form.
    pub(super) fn value<T: FromStr>(&self, name: &str) -> Result<Option<T>, Failure> {
        self.text(name)
            .map(|text| {
                text.parse().map_err(|_| {
                    Failure::bad_request(format!("query parameter {name}: cannot read {text:?}"))
                })
            })
            .transpose()
    }

    /// Whether nothing may be stored (`dryRun=All`).
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

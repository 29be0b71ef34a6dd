//! Which objects a list or watch is about.

mod field;
mod label;

use super::failure::Failure;
use super::metadata::Document;
use super::query::Query;
use super::resource::Resource;
use field::FieldSelector;
use label::LabelSelector;

/// Label and field selector of a request.
#[derive(Clone, Debug, Default)]
pub(super) struct Selector {
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selector {
    /// Reads `labelSelector` and `fieldSelector`.
    pub(super) fn parse(query: &Query, resource: &Resource) -> Result<Self, Failure> {
        Ok(Self {
            labels: LabelSelector::parse(query.text("labelSelector").unwrap_or_default())?,
            fields: FieldSelector::parse(query.text("fieldSelector").unwrap_or_default(), resource)?,
        })
    }

    /// Whether it selects the object.
    pub(super) fn matches(&self, object: &Document) -> bool {
        self.labels.matches(object) && self.fields.matches(object)
    }
}

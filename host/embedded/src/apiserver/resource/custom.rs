//! Kinds that a `CustomResourceDefinition` makes known.
//!
//! Of its schema, types, `required`, `enum`, bounds and defaults are kept; patterns and CEL rules are not. Versions
//! differ in name only: there is no conversion, objects are stored as they were written.

use super::{CustomColumn, Resource, codec::Codec, custom_schema::CustomSchema};
use crate::apiserver::failure::qualified;
use crate::apiserver::metadata::Document;
use crate::apiserver::store::CollectionName;
use serde_json::Value;
use std::sync::Arc;

/// A definition that cannot be served.
#[derive(Debug, thiserror::Error)]
#[error("{0} is missing")]
pub(in crate::apiserver) struct InvalidDefinition(pub(in crate::apiserver) &'static str);

/// Where objects of a definition are stored.
pub(in crate::apiserver) fn collection_of(definition: &Document) -> Option<CollectionName> {
    let spec = definition.get("spec")?;
    let group = spec.get("group")?.as_str()?;
    Some(qualified(group, spec.get("names")?.get("plural")?.as_str()?).into())
}

/// The kinds of a definition, one for each served version.
pub(in crate::apiserver) fn from_definition(
    definition: &Document,
) -> Result<Vec<Resource>, InvalidDefinition> {
    let spec = definition.get("spec").ok_or(InvalidDefinition("spec"))?;
    let names = spec.get("names").ok_or(InvalidDefinition("spec.names"))?;
    let name = |field: &str| names.get(field).and_then(Value::as_str).map(str::to_owned);
    let list = |field: &str| -> Vec<String> {
        let values = names.get(field).and_then(Value::as_array);
        values.into_iter().flatten().filter_map(|v| v.as_str().map(str::to_owned)).collect()
    };
    let group = spec.get("group").and_then(Value::as_str).ok_or(InvalidDefinition("spec.group"))?;
    let plural = name("plural").ok_or(InvalidDefinition("spec.names.plural"))?;
    let kind = name("kind").ok_or(InvalidDefinition("spec.names.kind"))?;
    let versions =
        spec.get("versions").and_then(Value::as_array).ok_or(InvalidDefinition("spec.versions"))?;
    let served = versions.iter().filter(|v| v.get("served").and_then(Value::as_bool) == Some(true));
    served
        .map(|version| {
            let schema = version.pointer("/schema/openAPIV3Schema").cloned().unwrap_or(Value::Bool(true));
            let status = version.pointer("/subresources/status").is_some();
            Ok(Resource {
                group: group.to_owned(),
                version: version
                    .get("name")
                    .and_then(Value::as_str)
                    .ok_or(InvalidDefinition("spec.versions[].name"))?
                    .to_owned(),
                plural: plural.clone(),
                singular: name("singular").unwrap_or_else(|| kind.to_lowercase()),
                kind: kind.clone(),
                short_names: list("shortNames"),
                categories: list("categories"),
                namespaced: spec.get("scope").and_then(Value::as_str) != Some("Cluster"),
                subresources: if status { vec!["status"] } else { Vec::new() },
                counts_generations: true,
                columns: columns(version),
                collection: qualified(group, &plural).into(),
                codec: Codec::Custom(CustomSchema(Arc::new(schema))),
            })
        })
        .collect()
}

fn columns(version: &Value) -> Vec<CustomColumn> {
    let columns = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let text = |column: &Value, field: &str| {
        column.get(field).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    columns
        .into_iter()
        .flatten()
        .map(|column| CustomColumn {
            name: text(column, "name"),
            kind: text(column, "type"),
            priority: column
                .get("priority")
                .and_then(Value::as_i64)
                .and_then(|p| i32::try_from(p).ok())
                .unwrap_or(0),
            path: text(column, "jsonPath"),
        })
        .collect()
}

//! Kinds that a `CustomResourceDefinition` defines.
//!
//! The server applies the types, `required`, `enum`, bounds and defaults of the schema, but not patterns and CEL rules.
//! Versions differ in name only: there is no conversion, and objects are stored as they were written.

use super::codec::Codec;
use super::{CustomColumn, Resource};
use crate::apiserver::failure::qualified;
use crate::apiserver::metadata::Document;
use crate::apiserver::store::CollectionName;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion,
};
use serde::Deserialize;
use serde_json::{Value, json};

/// Returns the collection in which objects of a definition are stored.
pub(crate) fn collection_of(definition: &Document) -> Option<CollectionName> {
    let definition = CustomResourceDefinition::deserialize(definition).ok()?;
    Some(qualified(&definition.spec.group, &definition.spec.names.plural).into())
}

/// Returns the kinds of a definition, one for each served version.
pub(crate) fn from_definition(definition: &Document) -> Result<Vec<Resource>, serde_json::Error> {
    let spec = CustomResourceDefinition::deserialize(definition)?.spec;
    let (group, names) = (spec.group, spec.names);
    let resource = |version: CustomResourceDefinitionVersion| {
        let schema = version.schema.and_then(|schema| schema.open_api_v3_schema);
        let has_status = version.subresources.is_some_and(|parts| parts.status.is_some());
        let columns = version.additional_printer_columns.unwrap_or_default().into_iter();
        Resource {
            group: group.clone(),
            version: version.name,
            plural: names.plural.clone(),
            singular: names.singular.clone().unwrap_or_else(|| names.kind.to_lowercase()),
            kind: names.kind.clone(),
            short_names: names.short_names.clone().unwrap_or_default(),
            categories: names.categories.clone().unwrap_or_default(),
            namespaced: spec.scope != "Cluster",
            subresources: if has_status { vec!["status"] } else { Vec::new() },
            counts_generations: true,
            columns: columns
                .map(|column| CustomColumn {
                    name: column.name,
                    kind: column.type_,
                    priority: column.priority.unwrap_or_default(),
                    path: column.json_path,
                })
                .collect(),
            collection: qualified(&group, &names.plural).into(),
            schema: schema.map_or(Value::Bool(true), |schema| json!(schema)),
            codec: Codec::Schema,
        }
    };
    Ok(spec.versions.into_iter().filter(|version| version.served).map(resource).collect())
}

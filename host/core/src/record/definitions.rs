//! The definitions of all custom resources of the service.

use serde_json::Value;

use crate::custom_resource::blueprint::blueprint_definition;
use crate::custom_resource::environment;
use crate::record;

/// Returns the `CustomResourceDefinition`s to install in a cluster: those of records, environments and blueprints.
pub fn definitions() -> Vec<Value> {
    let of_environments = environment::definitions();
    [record::definition()].into_iter().chain(of_environments).chain([blueprint_definition()]).collect()
}

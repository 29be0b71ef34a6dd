use k8s_openapi::api::core::v1::ConfigMap;

use super::metadata::{self};
use crate::names::labels::{COMPONENT_LABEL, LAB_ENV};
use crate::policy::ValidatedSpawn;
use crate::policy::compose::LabValue;

/// Builds the non-secret environment of the lab (SQR-066, "Environment"). Kubernetes does not expand `$(NAME)` in a
/// `ConfigMap`.
pub(super) fn build(spawn: &ValidatedSpawn) -> ConfigMap {
    let plain = spawn.env.iter().filter_map(|(name, value)| match value {
        LabValue::Plain(text) => Some((name.to_string(), text.clone())),
        LabValue::Credential(_) | LabValue::SecretKey(_) | LabValue::Field(_) => None,
    });
    let mut metadata = metadata::of_lab(spawn, &spawn.names.env);
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(COMPONENT_LABEL.to_owned(), LAB_ENV.to_owned());
    ConfigMap { metadata, data: Some(plain.collect()), ..ConfigMap::default() }
}

use super::Findings;
use crate::names::{EnvName, ObjectName};
use crate::policy::{EnvValue, EnvVar};
use crate::values::path;

/// Largest value of a variable in bytes. A `ConfigMap` holds 1 MiB, and one value may take a quarter of it.
const MAX_VALUE_BYTES: usize = 256 * 1024;

/// The pod fields that Kubernetes' downward API offers for environment variables.
const FIELDS: [&str; 8] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.podIP",
    "status.podIPs",
];

pub(super) fn check(env: &[EnvVar], found: &mut Findings) {
    found.each("env", env, ("name", |var| var.name.clone()), |var, found| {
        found.parsed("name", EnvName::parse(var.name.as_str()));
        match &var.value {
            EnvValue::Literal(value) => {
                found.refuse_if(
                    value.contains('\0'),
                    "value",
                    "contains a NUL, which no environment can hold",
                );
                found.refuse_if(value.len() > MAX_VALUE_BYTES, "value", "is longer than 256 KiB");
            }
            EnvValue::SecretRef(key) => {
                found.parsed("value.name", ObjectName::parse(key.name.as_str()));
                found.refuse_if(!path::is_key(&key.key), "value.key", "is not a key of a Secret");
            }
            EnvValue::FieldRef(field) => {
                if !is_pod_field(field) {
                    found.add(
                        "value",
                        format!("the environment can hold {} and single labels", FIELDS.join(", ")),
                    );
                }
            }
        }
    });
}

fn is_pod_field(field: &str) -> bool {
    let subscript = |kind: &str| {
        field
            .strip_prefix(kind)
            .and_then(|rest| rest.strip_suffix("']"))
            .is_some_and(|key| !key.contains('\''))
    };
    FIELDS.contains(&field) || subscript("metadata.labels['") || subscript("metadata.annotations['")
}

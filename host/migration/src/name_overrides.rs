//! `fullnameOverride` and `nameOverride`: what the objects of the Hub are called.

use serde_json::Value;

use crate::draft::{Draft, is_nothing};
use crate::hub_names::name_in;

/// Converts `fullnameOverride`.
pub(crate) fn fullname(draft: &mut Draft<'_>, path: &str, value: &Value) {
    match value {
        Value::Null => draft.open(
            path,
            "is `null`, so that the names of the Hub's objects begin with that of the release",
            "Write them to `auth.jupyterhub.api_url`, to the Secrets in `volumes` and to `hub-values.yaml`, such as `RELEASE-jupyterhub-hub`",
        ),
        _ if name_in(value).is_some() => {
            draft.carried(path, "auth.jupyterhub.api_url, and the names of the Hub's Secrets");
        }
        _ => without_name(draft, path, value),
    }
}

/// Converts `nameOverride`.
pub(crate) fn name(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if name_in(value).is_some() {
        draft.carried(path, "lab.network_policy, jupyterhub.podLabels of the service's chart");
    } else {
        without_name(draft, path, value);
    }
}

fn without_name(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if is_nothing(value) {
        draft.not_needed(path, "has no value");
    } else {
        draft.wrong_form(path);
    }
}

//! Names and labels of the objects that the Hub's chart makes (`_helpers-names.tpl` of its release 4).

use serde_json::Value;

use crate::becomes::plain_text;
use crate::draft::{Draft, is_nothing};

/// The names of the Hub's objects.
pub(crate) struct HubNames {
    /// The beginning of all names.
    prefix: String,
    /// The label `app` of all pods.
    pub(crate) app: String,
}

impl Default for HubNames {
    fn default() -> Self {
        Self { prefix: String::new(), app: "jupyterhub".to_owned() }
    }
}

impl HubNames {
    pub(crate) fn of(values: &Value) -> Self {
        let text = |key: &str| values.get(key).and_then(text);
        let usual = Self::default();
        Self {
            prefix: text("fullnameOverride").map_or(usual.prefix, |name| name + "-"),
            app: text("nameOverride").unwrap_or(usual.app),
        }
    }

    /// The name of an object, which is `hub` in most installations.
    pub(crate) fn object(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// True if pods have the label that the service expects without a setting.
    pub(crate) fn has_usual_app(&self) -> bool {
        self.app == Self::default().app
    }
}

/// Converts `fullnameOverride`.
pub(crate) fn fullname(draft: &mut Draft<'_>, path: &str, value: &Value) {
    match value {
        Value::Null => draft.open(
            path,
            "is `null`, so that the names of the Hub's objects begin with that of the release",
            "Write them to `auth.jupyterhub.api_url`, to the Secrets in `volumes` and to `hub-values.yaml`, such as `RELEASE-jupyterhub-hub`",
        ),
        _ if text(value).is_some() => {
            draft.carried(path, "auth.jupyterhub.api_url, and the names of the Hub's Secrets");
        }
        _ => without_name(draft, path, value),
    }
}

/// Converts `nameOverride`.
pub(crate) fn name(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if text(value).is_some() {
        draft.carried(path, "lab.network_policy, jupyterhub.podLabels of the service's chart");
    } else {
        without_name(draft, path, value);
    }
}

/// The name that a value of the chart gives.
fn text(value: &Value) -> Option<String> {
    let is_name = value.is_string() || value.is_number();
    Some(plain_text(value)).filter(|text| is_name && !text.is_empty())
}

fn without_name(draft: &mut Draft<'_>, path: &str, value: &Value) {
    if is_nothing(value) {
        draft.not_needed(path, "has no value");
    } else {
        draft.wrong_form(path);
    }
}

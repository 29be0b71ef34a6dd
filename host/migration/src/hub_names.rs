//! Names and labels of the objects that the Hub's chart makes (`_helpers-names.tpl` of its release 4).

use serde_json::Value;

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
    pub(crate) fn from_values(values: &Value) -> Self {
        let text = |key: &str| values.get(key).and_then(name_in);
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

/// The name that a value of the chart gives.
pub(crate) fn name_in(value: &Value) -> Option<String> {
    match value {
        Value::String(name) if !name.is_empty() => Some(name.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

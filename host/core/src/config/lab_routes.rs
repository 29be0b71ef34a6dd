//! `environments.clusters`: how the Hub reaches labs in other clusters.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::InvalidSetting;
use crate::names::ObjectName;

/// How the Hub reaches the labs in another cluster, whose pods have addresses that it may not reach.
///
/// The texts may contain `{name}`, the name of the lab's pod and of its Service; `{namespace}`; `{prefix}`, the path of the
/// lab's URL, such as `/user/ada/`; and `{port}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LabRoutes {
    /// The URL at which the Hub reaches a lab, without the path: `https://labs.far.example.org`, or a host for each lab.
    pub lab_url: String,
    /// The object that routes requests to the lab. The service makes it for each lab, together with a Service in front of
    /// the pod, and deletes both with the lab. Without it, something else leads to the lab.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub route: Option<RouteTemplate>,
}

/// The object that routes requests to a lab.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RouteTemplate {
    /// What it is.
    pub kind: RouteKind,
    /// Its annotations.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Its `spec`. A text that is only `{port}` becomes a number.
    pub spec: serde_json::Map<String, Value>,
}

/// A kind of objects that route requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum RouteKind {
    /// `Ingress` of `networking.k8s.io/v1`.
    Ingress,
    /// `HTTPRoute` of `gateway.networking.k8s.io/v1`.
    #[serde(rename = "HTTPRoute")]
    HttpRoute,
}

/// The values of the fields, for one lab.
#[derive(Debug, Clone, Copy)]
pub struct RouteFields<'a> {
    /// The name of the lab's pod and of its Service.
    pub name: &'a str,
    /// The lab's namespace.
    pub namespace: &'a str,
    /// The path of the lab's URL.
    pub prefix: &'a str,
    /// The port of the lab's Service.
    pub port: u16,
}

/// Values for checking templates.
const SAMPLE: RouteFields<'static> =
    RouteFields { name: "nb-ada", namespace: "nublado-ada", prefix: "/user/ada/", port: 8888 };

impl RouteFields<'_> {
    /// What is wrong with a template of a lab's URL.
    pub(super) fn problem(template: &str) -> Option<String> {
        let url = SAMPLE.fill(template);
        let is_url = ["http://", "https://"]
            .iter()
            .any(|scheme| url.strip_prefix(scheme).is_some_and(|rest| !rest.is_empty()));
        (!is_url || url.contains('{')).then(|| {
            format!(
                "{template:?} is not a URL such as https://labs.far.example.org; it may contain {{name}}, {{namespace}}, \
                 {{prefix}} and {{port}}"
            )
        })
    }

    /// What is wrong with a template that has a field which does not exist: a brace is left when the fields are filled.
    pub(super) fn unknown_field(template: &Value) -> Option<String> {
        let text = unknown_field(&SAMPLE.fill_value(template))?;
        Some(format!(
            "{text:?} has an unknown field; there are {{name}}, {{namespace}}, {{prefix}} and {{port}}"
        ))
    }

    /// The text with the values in place of the fields.
    pub fn fill(&self, text: &str) -> String {
        let port = self.port.to_string();
        let fields = [
            ("{name}", self.name),
            ("{namespace}", self.namespace),
            ("{prefix}", self.prefix),
            ("{port}", &port),
        ];
        fields.into_iter().fold(text.to_owned(), |text, (field, value)| text.replace(field, value))
    }

    /// The same with every text in a value.
    pub fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) if text == "{port}" => self.port.into(),
            Value::String(text) => self.fill(text).into(),
            Value::Array(values) => values.iter().map(|value| self.fill_value(value)).collect(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| (key.clone(), self.fill_value(value))).collect()
            }
            other => other.clone(),
        }
    }
}

/// Fields that do not exist, and URLs that are none.
pub(super) fn check(clusters: &BTreeMap<ObjectName, LabRoutes>) -> Vec<InvalidSetting> {
    let mut problems = Vec::new();
    for (secret, routes) in clusters {
        let key = format!("environments.clusters.{secret}");
        if let Some(message) = RouteFields::problem(&routes.lab_url) {
            problems.push(InvalidSetting::new(format!("{key}.lab_url"), message));
        }
        let unknown =
            routes.route.as_ref().and_then(|route| RouteFields::unknown_field(&route.spec.clone().into()));
        if let Some(message) = unknown {
            problems.push(InvalidSetting::new(format!("{key}.route.spec"), message));
        }
    }
    problems
}

/// A text in which a brace is left.
fn unknown_field(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => text.contains('{').then(|| text.clone()),
        Value::Array(values) => values.iter().find_map(unknown_field),
        Value::Object(fields) => fields.values().find_map(unknown_field),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const LAB: RouteFields<'static> =
        RouteFields { name: "nb-ada", namespace: "labs-ada", prefix: "/user/ada/", port: 8888 };

    #[test]
    fn fields_are_filled_in_every_text_and_a_port_is_a_number() {
        let spec = json!({"rules": [{"matches": [{"path": {"value": "{prefix}"}}],
            "backendRefs": [{"name": "{name}", "port": "{port}"}]}], "hostnames": ["{name}.{namespace}.example.org"]});
        let expected = json!({"rules": [{"matches": [{"path": {"value": "/user/ada/"}}],
            "backendRefs": [{"name": "nb-ada", "port": 8888}]}], "hostnames": ["nb-ada.labs-ada.example.org"]});
        assert_eq!(LAB.fill_value(&spec), expected);
    }

    #[test]
    fn a_url_that_is_none_and_a_field_that_does_not_exist_are_refused() {
        let problems = |routes: &str| -> Vec<String> {
            let clusters = serde_saphyr::from_str(&format!("far: {routes}")).unwrap();
            check(&clusters).iter().map(ToString::to_string).collect()
        };
        assert_eq!(problems("{lab_url: 'https://{name}.example.org'}"), [""; 0]);
        assert!(
            problems("{lab_url: labs.example.org}")[0]
                .starts_with("environments.clusters.far.lab_url: \"labs")
        );
        assert!(problems("{lab_url: 'https://{user}.example.org'}")[0].contains("it may contain {name}"));
        let spec =
            "{lab_url: 'https://x.org', route: {kind: Ingress, spec: {rules: [{host: '{user}.x.org'}]}}}";
        assert!(
            problems(spec)[0]
                .starts_with("environments.clusters.far.route.spec: \"{user}.x.org\" has an unknown")
        );
    }
}

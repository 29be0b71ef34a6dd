//! Field selectors: `metadata.name=x,status.phase!=Running`, for the fields that Kubernetes supports for a kind.

use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::Document;
use crate::apiserver::resource::Resource;
use serde_json::Value;

/// All of its requirements have to hold.
#[derive(Clone, Debug, Default)]
pub(super) struct FieldSelector(Vec<Requirement>);

#[derive(Clone, Debug)]
struct Requirement {
    path: String,
    value: String,
    equal: bool,
}

/// The fields that may be selected by, beyond name and namespace.
fn supported(resource: &Resource) -> &'static [&'static str] {
    match (resource.group.as_str(), resource.plural.as_str()) {
        ("", "pods") => &[
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.podIP",
            "status.nominatedNodeName",
        ],
        ("", "events") => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        ("", "namespaces") => &["status.phase"],
        ("", "secrets") => &["type"],
        ("", "nodes") => &["spec.unschedulable"],
        _ => &[],
    }
}

impl FieldSelector {
    pub(super) fn parse(text: &str, resource: &Resource) -> Result<Self, Failure> {
        text.split(',')
            .map(str::trim)
            .filter(|part| !part.is_empty())
            .map(|part| {
                let requirement = Requirement::parse(part).ok_or_else(|| {
                    Failure::bad_request(format!("invalid selector: {text:?}; can't understand {part:?}"))
                })?;
                let path = requirement.path.as_str();
                let known = path == "metadata.name"
                    || (path == "metadata.namespace" && resource.namespaced)
                    || supported(resource).contains(&path);
                if known {
                    Ok(requirement)
                } else {
                    Err(Failure::bad_request(format!("field label not supported: {path}")))
                }
            })
            .collect::<Result<_, _>>()
            .map(Self)
    }

    pub(super) fn matches(&self, object: &Document) -> bool {
        self.0
            .iter()
            .all(|requirement| requirement.equal == (read(object, &requirement.path) == requirement.value))
    }
}

impl Requirement {
    fn parse(text: &str) -> Option<Self> {
        let (path, value, equal) = if let Some((path, value)) = text.split_once("!=") {
            (path, value, false)
        } else {
            let (path, value) = text.split_once("==").or_else(|| text.split_once('='))?;
            (path, value, true)
        };
        Some(Self { path: path.to_owned(), value: value.to_owned(), equal })
    }
}

/// The field's value as text: a missing one is `""`, a missing switch `false`.
fn read(object: &Document, path: &str) -> String {
    let path = if path == "source" { "source.component" } else { path };
    let mut steps = path.split('.');
    let mut value = steps.next().and_then(|step| object.get(step));
    for step in steps {
        value = value.and_then(|v| v.get(step));
    }
    match value {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Bool(switch)) => switch.to_string(),
        Some(Value::Number(number)) => number.to_string(),
        _ if matches!(path, "spec.unschedulable" | "spec.hostNetwork") => "false".to_owned(),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::FieldSelector;
    use crate::apiserver::resource::built_in;
    use serde_json::json;

    #[test]
    fn selects_by_supported_fields_only() {
        let pods = built_in("", "pods").unwrap();
        let object = json!({"metadata": {"name": "a", "namespace": "n"}, "spec": {"nodeName": "here"}, "status": {"phase": "Running"}});
        let object = object.as_object().unwrap();
        for (selector, expected) in [
            ("", true),
            ("metadata.name=a,metadata.namespace=n", true),
            ("spec.nodeName=", false),
            ("spec.nodeName!=", true),
            ("status.phase!=Running", false),
            ("spec.hostNetwork=false", true),
        ] {
            assert_eq!(
                FieldSelector::parse(selector, &pods).unwrap().matches(object),
                expected,
                "{selector}"
            );
        }
        assert!(FieldSelector::parse("spec.foo=1", &pods).is_err());
        assert!(FieldSelector::parse("garbage", &pods).is_err());
    }
}

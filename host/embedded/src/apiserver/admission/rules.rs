//! The rules for single fields of each kind, as tables. Not all of Kubernetes' are here: those are that labs, and the
//! objects around them, can break.

use super::names::Form;
use crate::apiserver::failure::{Cause, Failure, duplicate, invalid, required, unsupported};
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::resource::Resource;
use crate::quantity;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// What a field has to be like.
pub(super) enum Rule {
    /// There, and not empty.
    Required,
    /// A text of this form, or empty.
    Is(Form),
    /// One of these texts, or absent.
    OneOf(&'static [&'static str]),
    /// A number in this range, or absent.
    Between(i64, i64),
    /// The number of a port; 0 counts as missing.
    Port,
    /// Another text than in the other items of the list.
    Unique,
    /// A map of labels.
    Labels,
    /// A map of quantities, none of them negative.
    Quantities,
}

use Rule::{Between, Is, Labels, OneOf, Port, Quantities, Required, Unique};

const PROTOCOLS: &[&str] = &["SCTP", "TCP", "UDP"];
const IDS: Rule = Between(0, i32::MAX as i64);

/// Rules of `spec` by the path of the field; `[]` stands for every item of a list.
pub(super) type Rules = &'static [(&'static str, Rule)];

pub(super) const POD: Rules = &[
    ("containers", Required),
    ("restartPolicy", OneOf(&["Always", "Never", "OnFailure"])),
    ("nodeSelector", Labels),
    ("nodeName", Is(Form::Subdomain)),
    ("hostname", Is(Form::Label)),
    ("activeDeadlineSeconds", Between(1, i32::MAX as i64)),
    ("securityContext.runAsUser", IDS),
    ("securityContext.runAsGroup", IDS),
    ("securityContext.fsGroup", IDS),
    ("tolerations[].key", Is(Form::QualifiedName)),
    ("tolerations[].operator", OneOf(&["Equal", "Exists"])),
    ("tolerations[].effect", OneOf(&["NoExecute", "NoSchedule", "PreferNoSchedule"])),
    ("volumes[].name", Required),
    ("volumes[].name", Is(Form::Label)),
    ("volumes[].name", Unique),
    ("volumes[].secret.secretName", Required),
    ("volumes[].configMap.name", Required),
    ("volumes[].persistentVolumeClaim.claimName", Required),
    ("volumes[].nfs.server", Required),
    ("volumes[].nfs.path", Required),
    ("volumes[].hostPath.path", Required),
];

pub(super) const CONTAINER: Rules = &[
    ("name", Required),
    ("name", Is(Form::Label)),
    ("image", Required),
    ("imagePullPolicy", OneOf(&["Always", "IfNotPresent", "Never"])),
    ("env[].name", Required),
    ("env[].name", Is(Form::EnvName)),
    ("ports[].containerPort", Port),
    ("ports[].name", Is(Form::PortName)),
    ("ports[].name", Unique),
    ("ports[].protocol", OneOf(PROTOCOLS)),
    ("volumeMounts[].mountPath", Required),
    ("volumeMounts[].mountPath", Unique),
    ("securityContext.runAsUser", IDS),
    ("securityContext.runAsGroup", IDS),
    ("resources.limits", Quantities),
    ("resources.requests", Quantities),
];

pub(super) const CLAIM: Rules = &[
    ("accessModes", Required),
    ("storageClassName", Is(Form::Subdomain)),
    ("resources.limits", Quantities),
    ("resources.requests", Quantities),
];

pub(super) const QUOTA: Rules = &[("hard", Quantities)];

pub(super) const LIMIT_RANGE: Rules = &[
    ("limits[].max", Quantities),
    ("limits[].min", Quantities),
    ("limits[].default", Quantities),
    ("limits[].defaultRequest", Quantities),
];

pub(super) const NETWORK_POLICY: Rules = &[
    ("podSelector.matchLabels", Labels),
    ("policyTypes[]", OneOf(&["Egress", "Ingress"])),
    ("ingress[].ports[].port", Between(1, 65535)),
    ("ingress[].ports[].protocol", OneOf(PROTOCOLS)),
    ("egress[].ports[].port", Between(1, 65535)),
    ("egress[].ports[].protocol", OneOf(PROTOCOLS)),
];

/// What is wrong with an object.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) causes: Vec<Cause>,
    /// A value that is none of its type, with its path. The other findings do not matter then.
    unreadable: Option<String>,
}

impl Findings {
    pub(super) fn refuse(self, resource: &Resource, object: &Document) -> Result<(), Failure> {
        if let Some(what) = self.unreadable {
            let kind = &resource.kind;
            return Err(Failure::bad_request(format!("the object cannot be handled as a {kind}: {what}")));
        }
        if self.causes.is_empty() {
            Ok(())
        } else {
            Err(resource.invalid(metadata::name(object), self.causes))
        }
    }

    /// Holds what is at `at` to the rules.
    pub(super) fn check(&mut self, rules: Rules, value: &Value, at: &str) {
        for (path, rule) in rules {
            let mut places = Vec::new();
            find(value, path, at, &mut places);
            let mut seen = HashSet::new();
            for (at, value) in places {
                match (rule, value) {
                    (Required, value) if is_empty(value) => self.causes.push(required(at)),
                    (Unique, Some(Value::String(text))) if !text.is_empty() && !seen.insert(text) => {
                        // Paths of mounts are the exception, as in Kubernetes.
                        let cause = if at.ends_with("mountPath") {
                            invalid(at, text, "must be unique")
                        } else {
                            duplicate(at, text)
                        };
                        self.causes.push(cause);
                    }
                    (Port, None) => self.causes.push(required(at)),
                    (_, Some(value)) => self.check_value(rule, value, at),
                    (_, None) => {}
                }
            }
        }
    }

    fn check_value(&mut self, rule: &Rule, value: &Value, at: String) {
        match (rule, value) {
            (Is(form), Value::String(text)) if !text.is_empty() && !form.accepts(text) => {
                self.causes.push(invalid(at, text, form.rule()));
            }
            (OneOf(known), Value::String(text)) if !text.is_empty() && !known.contains(&text.as_str()) => {
                self.causes.push(unsupported(at, text, known));
            }
            (Between(least, most), Value::Number(number))
                if !number.as_i64().is_some_and(|number| (*least..=*most).contains(&number)) =>
            {
                let range = format!("must be between {least} and {most}, inclusive");
                self.causes.push(invalid(at, &number.to_string(), &range));
            }
            (Port, Value::Number(number)) if number.as_i64() == Some(0) => self.causes.push(required(at)),
            (Port, number) => self.check_value(&Between(1, 65535), number, at),
            (Labels, Value::Object(labels)) => self.check_labels(labels, &at),
            (Quantities, Value::Object(amounts)) => {
                for (name, amount) in amounts {
                    let text = amount.as_str().unwrap_or_default();
                    match quantity::milli(text) {
                        None => self.unreadable = Some(format!("{at}[{name}]: {text:?} is not a quantity")),
                        Some(..0) => self.causes.push(invalid(
                            format!("{at}[{name}]"),
                            text,
                            "must be greater than or equal to 0",
                        )),
                        Some(_) => {}
                    }
                }
            }
            _ => {}
        }
    }

    pub(super) fn check_labels(&mut self, labels: &Map<String, Value>, at: &str) {
        for (key, value) in labels {
            let value = value.as_str().unwrap_or_default();
            for (form, given) in [(Form::QualifiedName, key.as_str()), (Form::LabelValue, value)] {
                if !form.accepts(given) {
                    self.causes.push(invalid(at, given, form.rule()));
                }
            }
        }
    }
}

/// The places that a path leads to; what is missing is a place too, unless all around it is missing.
fn find<'a>(value: &'a Value, path: &str, at: &str, places: &mut Vec<(String, Option<&'a Value>)>) {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    let mut enter = |at: String, child: Option<&'a Value>| match child {
        Some(child) if !rest.is_empty() => find(child, rest, &at, places),
        child if rest.is_empty() => places.push((at, child)),
        _ => {}
    };
    match step.strip_suffix("[]") {
        Some(list) => {
            for (i, item) in items(value.get(list)).enumerate() {
                enter(format!("{at}.{list}[{i}]"), Some(item));
            }
        }
        None => enter(format!("{at}.{step}"), value.get(step)),
    }
}

fn is_empty(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => true,
        Some(Value::String(text)) => text.trim().is_empty(),
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

pub(super) fn items(list: Option<&Value>) -> impl Iterator<Item = &Value> {
    list.and_then(Value::as_array).into_iter().flatten()
}

pub(super) fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value.get(field).and_then(Value::as_str).unwrap_or_default()
}

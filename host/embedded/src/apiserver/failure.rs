//! A failed request, as clients see it: a `Status` object (Kubernetes API conventions, "Response Status Kind").

use http::StatusCode;
use serde_json::{Value, json};

/// One thing wrong with an object; many may be told at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// Machine-readable, e.g. `FieldValueRequired`.
    pub(super) reason: &'static str,
    /// What is wrong, with the offending value.
    pub(super) message: String,
    /// Path to the field, e.g. `spec.containers[0].name`.
    pub(super) field: String,
}

const UNREADABLE: &str = "Unreadable";

impl Cause {
    /// The field has to be there.
    pub(super) fn required(field: impl Into<String>, why: &str) -> Self {
        let message =
            if why.is_empty() { "Required value".to_owned() } else { format!("Required value: {why}") };
        Self { reason: "FieldValueRequired", message, field: field.into() }
    }

    /// The field's value breaks a rule.
    pub(super) fn invalid(field: impl Into<String>, value: &str, why: &str) -> Self {
        Self {
            reason: "FieldValueInvalid",
            message: format!("Invalid value: {value:?}: {why}"),
            field: field.into(),
        }
    }

    /// The field's value is none of its type. Such objects are not looked into any further.
    pub(super) fn unreadable(field: impl Into<String>, value: &str, why: &str) -> Self {
        Self { reason: UNREADABLE, ..Self::invalid(field, value, why) }
    }

    /// Whether the value is none of its type.
    pub(super) fn is_unreadable(&self) -> bool {
        self.reason == UNREADABLE
    }

    /// Two items claim to be the same one.
    pub(super) fn duplicate(field: impl Into<String>, value: &str) -> Self {
        Self {
            reason: "FieldValueDuplicate",
            message: format!("Duplicate value: {value:?}"),
            field: field.into(),
        }
    }

    /// The field refers to something that is not there.
    pub(super) fn not_found(field: impl Into<String>, value: &str) -> Self {
        Self { reason: "FieldValueNotFound", message: format!("Not found: {value:?}"), field: field.into() }
    }

    /// The field's value is not one of a closed list.
    pub(super) fn unsupported(field: impl Into<String>, value: &str, supported: &[&str]) -> Self {
        let supported = supported.iter().map(|s| format!("{s:?}")).collect::<Vec<_>>().join(", ");
        Self {
            reason: "FieldValueNotSupported",
            message: format!("Unsupported value: {value:?}: supported values: {supported}"),
            field: field.into(),
        }
    }

    /// The field may not be set or changed here.
    pub(super) fn forbidden(field: impl Into<String>, why: &str) -> Self {
        Self { reason: "FieldValueForbidden", message: format!("Forbidden: {why}"), field: field.into() }
    }

    /// The value is larger than allowed.
    pub(super) fn too_long(field: impl Into<String>, limit: usize) -> Self {
        Self {
            reason: "FieldValueTooLong",
            message: format!("Too long: may not be more than {limit} bytes"),
            field: field.into(),
        }
    }
}

/// What a failure is about.
#[derive(Clone, Debug, Default)]
struct Subject {
    group: String,
    kind: String,
    name: String,
}

/// A request that failed. Boxed: failures are rare, results are not.
#[derive(Clone, Debug)]
pub(super) struct Failure(Box<Told>);

/// Everything that the `Status` tells.
#[derive(Clone, Debug)]
struct Told {
    code: StatusCode,
    reason: &'static str,
    message: String,
    subject: Subject,
    causes: Vec<Cause>,
    retry_after: Option<u32>,
}

/// The name of a kind as failures tell it: `pods` or `leases.coordination.k8s.io`.
pub(super) fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

impl Failure {
    fn new(code: StatusCode, reason: &'static str, message: impl Into<String>) -> Self {
        Self(Box::new(Told {
            code,
            reason,
            message: message.into(),
            subject: Subject::default(),
            causes: Vec::new(),
            retry_after: None,
        }))
    }

    fn about(mut self, group: &str, plural: &str, name: &str) -> Self {
        self.0.subject = Subject { group: group.to_owned(), kind: plural.to_owned(), name: name.to_owned() };
        self
    }

    /// 404: no such object.
    pub(super) fn not_found(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {name:?} not found", qualified(group, plural));
        Self::new(StatusCode::NOT_FOUND, "NotFound", message).about(group, plural, name)
    }

    /// 404: no such path.
    pub(super) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    /// 409: create found the name taken.
    pub(super) fn already_exists(group: &str, plural: &str, name: &str) -> Self {
        let message = format!("{} {name:?} already exists", qualified(group, plural));
        Self::new(StatusCode::CONFLICT, "AlreadyExists", message).about(group, plural, name)
    }

    /// 409: a precondition or an optimistic lock does not hold.
    pub(super) fn conflict(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message =
            format!("Operation cannot be fulfilled on {} {name:?}: {why}", qualified(group, plural));
        Self::new(StatusCode::CONFLICT, "Conflict", message).about(group, plural, name)
    }

    /// 409: other managers own fields that an apply wants to change.
    pub(super) fn apply_conflict(causes: Vec<Cause>) -> Self {
        let told =
            causes.iter().map(|c| format!("{}: {}", c.message, c.field)).collect::<Vec<_>>().join(", ");
        let plural = if causes.len() == 1 { "conflict" } else { "conflicts" };
        let message = format!("Apply failed with {} {plural}: {told}", causes.len());
        let mut failure = Self::new(StatusCode::CONFLICT, "Conflict", message);
        failure.0.causes = causes;
        failure
    }

    /// 422: the object breaks rules of its kind.
    pub(super) fn invalid(group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        let told = causes.iter().map(|c| format!("{}: {}", c.field, c.message)).collect::<Vec<_>>();
        let told = if told.len() == 1 { told.concat() } else { format!("[{}]", told.join(", ")) };
        let message = format!("{} {name:?} is invalid: {told}", qualified(group, kind));
        let mut failure =
            Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message).about(group, kind, name);
        failure.0.causes = causes;
        failure
    }

    /// 422: the request is understood, but what it asks for does not work.
    pub(super) fn unprocessable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    /// 403: an admission rule refuses the object.
    pub(super) fn forbidden(group: &str, plural: &str, name: &str, why: &str) -> Self {
        let message = format!("{} {name:?} is forbidden: {why}", qualified(group, plural));
        Self::new(StatusCode::FORBIDDEN, "Forbidden", message).about(group, plural, name)
    }

    /// 403: nothing is created in a namespace on its way out. The cause lets clients tell it from other refusals.
    pub(super) fn namespace_terminating(group: &str, plural: &str, name: &str, namespace: &str) -> Self {
        let why =
            format!("unable to create new content in namespace {namespace} because it is being terminated");
        let mut failure = Self::forbidden(group, plural, name, &why);
        failure.0.causes.push(Cause {
            reason: "NamespaceTerminating",
            message: format!("namespace {namespace} is being terminated"),
            field: "metadata.namespace".to_owned(),
        });
        failure
    }

    /// 400: the request cannot be understood.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401: no or unknown credentials.
    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 405: the path exists but not for this method.
    pub(super) fn method_not_allowed() -> Self {
        Self::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
    }

    /// 406: none of the forms that the client takes is served.
    pub(super) fn not_acceptable(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 410: the asked revision is older than what is remembered; list again.
    pub(super) fn expired(asked: u64, oldest: u64) -> Self {
        let message = format!("too old resource version: {asked} ({oldest})");
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 410: a page of a list whose revision is gone; start the list again.
    pub(super) fn continue_expired() -> Self {
        let message = "The provided continue parameter is too old to display a consistent list result. \
                       You can start a new list without the continue parameter.";
        Self::new(StatusCode::GONE, "Expired", message)
    }

    /// 504: a revision that has not been reached.
    pub(super) fn too_large_revision(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let mut failure = Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message);
        failure.0.causes.push(Cause {
            reason: "ResourceVersionTooLarge",
            message: "Too large resource version".to_owned(),
            field: String::new(),
        });
        failure.0.retry_after = Some(1);
        failure
    }

    /// 413: the body is larger than the server takes.
    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("limit is {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 415: a body in a format that is not read here.
    pub(super) fn unsupported_media_type(supported: &str) -> Self {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {supported}"
        );
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 500: the server's own fault. The cause belongs into the log, not here.
    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// 501: known to Kubernetes, not done here.
    pub(super) fn not_implemented(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    /// The HTTP status of the answer.
    pub(super) fn code(&self) -> StatusCode {
        self.0.code
    }

    /// Whether a create found the name taken.
    pub(super) fn is_already_exists(&self) -> bool {
        self.0.reason == "AlreadyExists"
    }

    /// The `Status` object.
    pub(super) fn to_status(&self) -> Value {
        let told = &self.0;
        let mut status = json!({
            "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Failure",
            "message": told.message, "reason": told.reason, "code": told.code.as_u16(),
        });
        let mut details = serde_json::Map::new();
        for (key, value) in
            [("group", &told.subject.group), ("kind", &told.subject.kind), ("name", &told.subject.name)]
        {
            if !value.is_empty() {
                details.insert(key.to_owned(), json!(value));
            }
        }
        if !told.causes.is_empty() {
            let causes = told
                .causes
                .iter()
                .map(|c| json!({"reason": c.reason, "message": c.message, "field": c.field}))
                .collect();
            details.insert("causes".to_owned(), Value::Array(causes));
        }
        if let Some(seconds) = told.retry_after {
            details.insert("retryAfterSeconds".to_owned(), json!(seconds));
        }
        if !details.is_empty() {
            status["details"] = Value::Object(details);
        }
        status
    }
}

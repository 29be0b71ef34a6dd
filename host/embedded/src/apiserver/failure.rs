//! Failed requests in the form for clients: a `Status` object (Kubernetes API conventions, "Response Status Kind").

use http::StatusCode;
use kube::core::Status;
use kube::core::response::StatusDetails;
use serde_json::{Value, json};

/// One problem with an object; a failure can have many.
pub(super) use kube::core::response::StatusCause as Cause;

pub(super) fn cause(reason: &str, field: impl Into<String>, message: String) -> Cause {
    Cause { reason: reason.to_owned(), message, field: field.into() }
}

/// A required field is missing.
pub(super) fn required(field: impl Into<String>) -> Cause {
    cause("FieldValueRequired", field, "Required value".to_owned())
}

/// The field's value breaks a rule.
pub(super) fn invalid(field: impl Into<String>, value: &str, rule: &str) -> Cause {
    cause("FieldValueInvalid", field, format!("Invalid value: {value:?}: {rule}"))
}

/// Two items have the same value, which must be unique.
pub(super) fn duplicate(field: impl Into<String>, value: &str) -> Cause {
    cause("FieldValueDuplicate", field, format!("Duplicate value: {value:?}"))
}

/// The field refers to something that does not exist.
pub(super) fn not_found(field: impl Into<String>, value: &str) -> Cause {
    cause("FieldValueNotFound", field, format!("Not found: {value:?}"))
}

/// The field's value is not one of a closed list.
pub(super) fn unsupported(field: impl Into<String>, value: &str, supported: &[&str]) -> Cause {
    let supported = supported.join(", ");
    cause(
        "FieldValueNotSupported",
        field,
        format!("Unsupported value: {value:?}: supported values: {supported}"),
    )
}

/// The field must not be set or changed here.
pub(super) fn forbidden(field: impl Into<String>, rule: &str) -> Cause {
    cause("FieldValueForbidden", field, format!("Forbidden: {rule}"))
}

/// The failure of a request. It is boxed because failures are rare and results are not.
#[derive(Clone, Debug)]
pub(super) struct Failure(Box<Status>);

/// Returns the name of a kind for failures: `pods` or `leases.coordination.k8s.io`.
pub(super) fn qualified(group: &str, plural: &str) -> String {
    if group.is_empty() { plural.to_owned() } else { format!("{plural}.{group}") }
}

impl Failure {
    pub(super) fn new(code: StatusCode, reason: &str, message: impl AsRef<str>) -> Self {
        Self(Status::failure(message.as_ref(), reason).with_code(code.as_u16()).boxed())
    }

    /// Adds the object that the failure is about.
    pub(super) fn about(mut self, group: &str, kind: &str, name: &str, causes: Vec<Cause>) -> Self {
        self.0.details = Some(StatusDetails {
            name: name.to_owned(),
            group: group.to_owned(),
            kind: kind.to_owned(),
            uid: String::new(),
            causes,
            retry_after_seconds: 0,
        });
        self
    }

    /// 404: the namespace in the path does not exist.
    pub(super) fn no_namespace(name: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", format!("namespaces {name:?} not found")).about(
            "",
            "namespaces",
            name,
            Vec::new(),
        )
    }

    /// 404: no such path.
    pub(super) fn no_route() -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", "the server could not find the requested resource")
    }

    /// 422: the request is understood, but what it asks for does not work.
    pub(super) fn unprocessable(message: impl AsRef<str>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "Invalid", message)
    }

    /// 400: the request cannot be understood.
    pub(super) fn bad_request(message: impl AsRef<str>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    /// 401: no or unknown credentials.
    pub(super) fn unauthorized() -> Self {
        Self::new(StatusCode::UNAUTHORIZED, "Unauthorized", "Unauthorized")
    }

    /// 405: the path exists but not for this method.
    pub(super) fn method_not_allowed() -> Self {
        let message = "the server does not allow this method on the requested resource";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "MethodNotAllowed", message)
    }

    /// 406: none of the forms that the client takes is served.
    pub(super) fn not_acceptable() -> Self {
        let message = "only the following media types are accepted: application/json";
        Self::new(StatusCode::NOT_ACCEPTABLE, "NotAcceptable", message)
    }

    /// 410: the requested revision is older than the remembered changes. The client has to list again.
    pub(super) fn expired(asked: u64, oldest: u64) -> Self {
        Self::new(StatusCode::GONE, "Expired", format!("too old resource version: {asked} ({oldest})"))
    }

    /// 504: the requested revision has not been reached. The cause distinguishes this from other timeouts for clients.
    pub(super) fn too_large_revision(asked: u64, current: u64) -> Self {
        let message = format!("Too large resource version: {asked}, current: {current}");
        let too_large = cause("ResourceVersionTooLarge", "", "Too large resource version".to_owned());
        Self::new(StatusCode::GATEWAY_TIMEOUT, "Timeout", message).about("", "", "", vec![too_large])
    }

    /// 413: the body is larger than the limit.
    pub(super) fn too_large(limit: usize) -> Self {
        let message = format!("limit is {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "RequestEntityTooLarge", message)
    }

    /// 415: the body has a format that is not supported.
    pub(super) fn unsupported_media_type(supported: &str) -> Self {
        let message = format!("the body has an unknown format; accepted media types: {supported}");
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)
    }

    /// 500: the server is at fault. The cause belongs in the log, not in the answer.
    pub(super) fn internal(message: impl AsRef<str>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "InternalError", message)
    }

    /// 501: Kubernetes supports the request, but this server does not.
    pub(super) fn not_implemented(message: impl AsRef<str>) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "NotImplemented", message)
    }

    pub(super) fn code(&self) -> StatusCode {
        StatusCode::from_u16(self.0.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// True if a create found the name taken.
    pub(super) fn is_already_exists(&self) -> bool {
        self.0.reason == "AlreadyExists"
    }

    pub(super) fn to_status(&self) -> Value {
        let mut status = json!(self.0);
        status["apiVersion"] = json!("v1");
        status["kind"] = json!("Status");
        status
    }
}

//! Errors as clients receive them: `{"detail": [{"loc", "msg", "type"}], "request_id"}`, one entry per problem.

pub(crate) mod kind;
pub(crate) mod request_id;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{StatusCode, header};
use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::policy::compose::Source;

use self::kind::ProblemKind;
use self::request_id::RequestId;
use wasmspawner_spawner::DeniedBy;

/// The refusal of a request. [`render`], which knows the request's id, turns it into a body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    status: StatusCode,
    details: Vec<Detail>,
    retry_after: Option<u64>,
    /// The path of the conflicting lab.
    location: Option<String>,
    /// The body in another dialect.
    body: Option<Vec<u8>>,
}

/// One problem with a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(crate) struct Detail {
    /// The part of the request that the problem is about: `["path", "username"]`, `["body", "env", "PATH"]`. Empty when
    /// it is about no particular part.
    pub(crate) loc: Vec<String>,
    /// What is wrong, as text for people.
    pub(crate) msg: String,
    /// What is wrong, as an identifier for programs. It does not change between versions.
    #[serde(rename = "type")]
    #[schema(rename = "type", value_type = String)]
    pub(crate) kind: ProblemKind,
    /// Who does not allow it; for `permission_denied` where it was no matter of the caller's rights.
    #[serde(skip_serializing_if = "Option::is_none")]
    ctx: Option<Denial>,
}

/// Who does not allow something, and by which rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
struct Denial {
    /// `policy`, `configuration`, `identity_provider` or `service`.
    #[schema(example = "policy")]
    decided_by: &'static str,
    /// The name of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<String>,
    /// The rule of the policy, or the hook where the rule has no name; the key of the configuration, or the limit.
    #[schema(example = "authorize.decide")]
    rule: String,
}

impl From<DeniedBy> for Denial {
    fn from(denied: DeniedBy) -> Self {
        let DeniedBy { source, rule } = denied;
        let (decided_by, policy) = match source {
            Source::Policy(name) => ("policy", Some(name)),
            Source::Configuration => ("configuration", None),
            Source::IdentityProvider => ("identity_provider", None),
            Source::Request | Source::Service | Source::Blueprint(_) | Source::Baseline => ("service", None),
        };
        Self { decided_by, policy, rule }
    }
}

/// The body of every answer with a 4xx or 5xx status.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ErrorBody {
    /// What is wrong, one entry per problem; never empty.
    detail: Vec<Detail>,
    /// The request's id, which is also in the service's log and in the header `x-request-id`.
    request_id: String,
}

impl Detail {
    /// Creates a problem with the part `loc` of the request.
    pub(crate) fn new<L: Into<String>>(
        loc: impl IntoIterator<Item = L>,
        kind: ProblemKind,
        msg: impl Into<String>,
    ) -> Self {
        Self { loc: loc.into_iter().map(Into::into).collect(), msg: msg.into(), kind, ctx: None }
    }

    /// Returns true if what is asked for exceeds what the user may have of CPU and memory.
    pub(crate) fn is_about_quota(&self) -> bool {
        self.ctx.as_ref().is_some_and(|denial| denial.decided_by == "service" && denial.rule == "quota")
    }
}

impl Problem {
    /// Creates one problem that is about no particular part of the request.
    pub(crate) fn new(kind: ProblemKind, msg: impl Into<String>) -> Self {
        Self::from_details(vec![Detail::new([""; 0], kind, msg)])
    }

    /// Creates one problem with the part `loc` of the request.
    pub(crate) fn at(loc: &[&str], kind: ProblemKind, msg: impl Into<String>) -> Self {
        Self::from_details(vec![Detail::new(loc.iter().copied(), kind, msg)])
    }

    /// Creates an answer with several problems, which have one status. `details` must not be empty.
    pub(crate) fn from_details(details: Vec<Detail>) -> Self {
        let kind = details.first().map_or(ProblemKind::InternalError, |detail| detail.kind);
        let status = kind.status();
        Self { status, details, retry_after: None, location: None, body: None }
    }

    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        self.status
    }

    /// The single problems.
    pub(crate) fn details(&self) -> &[Detail] {
        &self.details
    }

    /// Names another part of the request for problems with the part `loc`: that of the client's own dialect.
    pub(crate) fn relocated(mut self, loc: &[&str], last: Option<&str>) -> Self {
        if let Some(last) = last {
            for detail in self.details.iter_mut().filter(|detail| detail.loc == loc) {
                detail.loc.pop();
                detail.loc.push(last.to_owned());
            }
        }
        self
    }

    /// Replaces status and body by those of another dialect. The conflicting lab is not named.
    pub(crate) fn with_body(self, status: StatusCode, body: Vec<u8>) -> Self {
        Self { status, body: Some(body), location: None, ..self }
    }

    /// Adds the source of the refusal.
    pub(crate) fn decided_by(mut self, by: DeniedBy) -> Self {
        if let [detail] = self.details.as_mut_slice() {
            detail.ctx = Some(by.into());
        }
        self
    }

    /// Adds the path of the lab if the problem is a conflict.
    pub(crate) fn with_lab_at(mut self, path: String) -> Self {
        self.location = (self.status == StatusCode::CONFLICT).then_some(path);
        self
    }

    /// 404: no blueprint of this name for the user.
    pub(crate) fn unknown_blueprint(msg: impl Into<String>) -> Self {
        Self::at(&["path", "blueprint"], ProblemKind::UnknownBlueprint, msg)
    }

    /// 500: the request is correct and the service is at fault. The details are only in the log.
    pub(crate) fn internal() -> Self {
        let msg = "something went wrong in the service; its log has the details under this request_id";
        Self::new(ProblemKind::InternalError, msg)
    }

    /// 404: no lab, or no record of one.
    pub(crate) fn unknown_lab(msg: impl Into<String>) -> Self {
        Self::at(&["path", "username"], ProblemKind::UnknownLab, msg)
    }

    /// 404: no such operation, or none that the caller may see.
    pub(crate) fn unknown_job() -> Self {
        let msg = "no such operation is remembered";
        Self::at(&["path", "job_id"], ProblemKind::UnknownJob, msg)
    }

    /// Adds `Retry-After`, the number of seconds after which another attempt makes sense.
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// Returns the problem for an error response that a lower layer created without a [`Problem`]; only its status is
    /// known.
    fn of_status(status: StatusCode) -> Self {
        let (kind, msg) = match status {
            StatusCode::NOT_FOUND => (ProblemKind::UnknownRoute, "there is no such route"),
            StatusCode::METHOD_NOT_ALLOWED => (
                ProblemKind::MethodNotAllowed,
                "this route does not know that method; the header Allow lists those it knows",
            ),
            StatusCode::PAYLOAD_TOO_LARGE => (ProblemKind::BodyTooLarge, "the body is too large"),
            status if status.is_client_error() => {
                (ProblemKind::BadRequest, "the request cannot be understood")
            }
            _ => return Self { status, ..Self::internal() },
        };
        Self { status, ..Self::new(kind, msg) }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        response.extensions_mut().insert(self);
        response
    }
}

/// Adds the body to an error response, so that the errors of all layers have the same format.
pub(crate) fn render(response: Response, request_id: &RequestId) -> Response {
    let status = response.status();
    if !status.is_client_error() && !status.is_server_error() {
        return response;
    }
    let problem =
        response.extensions().get::<Problem>().cloned().unwrap_or_else(|| Problem::of_status(status));
    let headers = headers(&problem, response.headers());
    let body = problem.body.unwrap_or_else(|| {
        let body = ErrorBody { detail: problem.details, request_id: request_id.as_str().to_owned() };
        // Serializing strings cannot fail; if it did, the empty body would still have the right status.
        serde_json::to_vec(&body).unwrap_or_default()
    });
    (problem.status, headers, Body::from(body)).into_response()
}

fn headers(problem: &Problem, given: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if let Some(allow) = given.get(ALLOW) {
        headers.insert(ALLOW, allow.clone());
    }
    if let Some(seconds) = problem.retry_after {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    if let Some(location) = problem.location.as_deref().and_then(|path| HeaderValue::from_str(path).ok()) {
        headers.insert(LOCATION, location);
    }
    if problem.status == StatusCode::UNAUTHORIZED {
        headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    if matches!(problem.status, StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT) {
        // The rest of the body is not read, so the connection cannot be used again.
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::BodyExt as _;
    use wasmspawner_spawner::SpawnError;

    async fn body(response: Response) -> serde_json::Value {
        let bytes = response.into_body().collect().await.unwrap().to_bytes();
        serde_json::from_slice(&bytes).unwrap()
    }

    #[tokio::test]
    async fn a_problem_has_the_documented_json_shape() {
        let problem = Problem::at(&["path", "username"], ProblemKind::TooManySpawns, "later").retry_after(3);
        let response = render(problem.into_response(), &RequestId::from_static("r1"));
        assert_eq!(response.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(response.headers()[RETRY_AFTER], "3");
        let expected = serde_json::json!({
            "detail": [{"loc": ["path", "username"], "msg": "later", "type": "too_many_spawns"}],
            "request_id": "r1",
        });
        assert_eq!(body(response).await, expected);
    }

    #[tokio::test]
    async fn a_status_without_a_body_gets_one() {
        for status in 400..600 {
            let bare = StatusCode::from_u16(status).unwrap().into_response();
            let response = render(bare, &RequestId::from_static("r1"));
            assert_eq!(response.status().as_u16(), status);
            assert!(body(response).await["detail"][0]["type"].is_string());
        }
    }

    #[test]
    fn what_is_not_the_fault_of_a_policy_may_be_tried_again() {
        let answer = |error: SpawnError| {
            let answer = render(Problem::from(error).into_response(), &RequestId::from_static("r1"));
            (answer.status(), answer.headers().contains_key(RETRY_AFTER))
        };
        let policy = || "site".to_owned();
        let unavailable = SpawnError::PolicyUnavailable { policy: policy(), reason: "PolicyOverloaded" };
        assert_eq!(answer(unavailable), (StatusCode::SERVICE_UNAVAILABLE, true));
        let failed = SpawnError::PolicyFailed { policy: policy(), reason: "PolicyTrap" };
        assert_eq!(answer(failed), (StatusCode::INTERNAL_SERVER_ERROR, false));
    }
}

//! What clients may ask about themselves: who they are, and whether they may do something. Nothing is stored.

use super::access::Identity;
use super::body::Body;
use super::failure::Failure;
use super::{input, present};
use bytes::Bytes;
use http::{Method, Response, StatusCode};
use serde_json::json;

/// The kind of review that a path is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Review {
    /// `authentication.k8s.io/v1` `SelfSubjectReview`
    Identity,
    /// `authorization.k8s.io/v1` `SelfSubjectAccessReview`
    Access,
}

/// Answers a review: whoever is let in may do everything.
pub(super) fn answer(
    review: Review,
    method: &Method,
    identity: &Identity,
    body: &Bytes,
) -> Result<Response<Body>, Failure> {
    if method != Method::POST {
        return Err(Failure::method_not_allowed());
    }
    let mut document = input::parse_object(body)?;
    let status = match review {
        Review::Identity => json!({"userInfo": {"username": identity.name, "groups": identity.groups}}),
        Review::Access => json!({"allowed": true, "reason": "this API server authorizes every caller"}),
    };
    document.insert("status".to_owned(), status);
    Ok(present::json(StatusCode::CREATED, &json!(document)))
}

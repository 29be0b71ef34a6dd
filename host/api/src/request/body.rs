//! The extractor of JSON bodies. It checks the content type and the size.

use std::time::Duration;

use axum::extract::rejection::{BytesRejection, FailedToBufferBody};
use axum::extract::{FromRequest, Request};
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;

use crate::problem::Problem;
use crate::problem::kind::ProblemKind;

/// The time limit for sending a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// The bytes of a body with the content type `application/json`.
#[derive(Debug)]
pub(crate) struct JsonBytes(pub(crate) Bytes);

impl<S: Send + Sync> FromRequest<S> for JsonBytes {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        if !is_json(request.headers()) {
            let msg = "the body must be JSON: send the header `Content-Type: application/json`";
            let loc = &["header", "content-type"];
            return Err(Problem::at(loc, ProblemKind::UnsupportedMediaType, msg));
        }
        let body = tokio::time::timeout(BODY_TIMEOUT, Bytes::from_request(request, state)).await;
        let body = body.map_err(|_| {
            let msg = format!("the body did not arrive within {} s", BODY_TIMEOUT.as_secs());
            Problem::at(&["body"], ProblemKind::BodyTimeout, msg)
        })?;
        body.map(Self).map_err(|rejection| refusal(&rejection))
    }
}

/// Returns true if the body is declared as JSON, and as nothing else.
pub(crate) fn is_json(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(CONTENT_TYPE).iter();
    let essence =
        types.next().and_then(|header| header.to_str().ok()).and_then(|header| header.split(';').next());
    essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
        && types.next().is_none()
}

fn refusal(rejection: &BytesRejection) -> Problem {
    match rejection {
        BytesRejection::FailedToBufferBody(FailedToBufferBody::LengthLimitError(_)) => {
            Problem::at(&["body"], ProblemKind::BodyTooLarge, "the body is too large")
        }
        _ => Problem::at(&["body"], ProblemKind::IncompleteBody, "the body ended early"),
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use futures::stream;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_body_that_never_arrives_is_not_waited_for() {
        let body = Body::from_stream(stream::pending::<Result<Bytes, std::io::Error>>());
        let request = Request::builder().header(CONTENT_TYPE, "application/json").body(body).unwrap();
        let problem = JsonBytes::from_request(request, &()).await.unwrap_err();
        assert!(format!("{problem:?}").contains("body_timeout"), "{problem:?}");
    }
}

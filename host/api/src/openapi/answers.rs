//! Additions to the responses of all routes.

use utoipa::Modify;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::{ContentBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Response, ResponseBuilder, Type};

use super::operations;
use crate::problem::ErrorBody;

/// The answers to a request to start something that is not started.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers, which `Problem` gives")]
pub(crate) enum StartRefused {
    #[response(status = 403, description = "A policy or a limit does not allow it")]
    NotAllowed(ErrorBody),
    #[response(
        status = 429,
        description = "Too much is being started, by this user or by all, or a policy asks to try again later",
        headers(("retry-after" = u32, description = "Seconds"))
    )]
    Busy(ErrorBody),
    #[response(
        status = 503,
        description = "The service has just started or is about to end, or the cluster cannot be reached",
        headers(("retry-after" = u32, description = "Seconds"))
    )]
    Unavailable(ErrorBody),
}

/// The answers to a request for a stream of events that is not opened.
#[derive(utoipa::IntoResponses)]
#[expect(dead_code, reason = "it describes answers, which `Problem` gives")]
pub(crate) enum StreamRefused {
    #[response(
        status = 429,
        description = "Too many event streams, or too many requests, of this user",
        headers(("retry-after" = u32, description = "Seconds"))
    )]
    TooMany(ErrorBody),
}

/// Adds the error responses that every route may give, those to a body that cannot be used included.
pub(super) struct CommonErrors;

impl Modify for CommonErrors {
    fn modify(&self, document: &mut OpenApi) {
        for item in document.paths.paths.values_mut() {
            let has_names = item.parameters.is_some();
            for operation in operations(item) {
                let with_credentials = operation.security.is_none();
                let has_body = operation.request_body.is_some();
                let mut add = |status: &str, response: Response| {
                    let responses = &mut operation.responses.responses;
                    responses.entry(status.to_owned()).or_insert_with(|| response.into());
                };
                add("414", error("Path and query are too long"));
                add("431", error("The headers are too large, or too many"));
                add("500", error("A fault of the service, or of a policy"));
                if with_credentials {
                    let scheme = text("`Bearer`");
                    add("401", with(error("No valid credential"), "www-authenticate", scheme));
                    add("403", error("The credential is not good for this"));
                    let away = "Not ready, or the identity provider does not answer";
                    add("503", with(error(away), "retry-after", seconds()));
                }
                if has_body {
                    add("400", error("The body is not JSON"));
                    add("413", error("The body is too large"));
                    add("415", error("The body does not say that it is JSON"));
                    add("422", error("A part of the body is invalid"));
                }
                if has_names {
                    add("400", error("A name in the path is not UTF-8"));
                    add("422", error("A name in the path is invalid"));
                }
            }
        }
    }
}

/// Adds the header `x-request-id`, which every answer has.
pub(super) struct RequestIds;

impl Modify for RequestIds {
    fn modify(&self, document: &mut OpenApi) {
        let id = text("Ties the answer to the service's log");
        for operation in document.paths.paths.values_mut().flat_map(operations) {
            for response in operation.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    response.headers.insert("x-request-id".to_owned(), id.clone().into());
                }
            }
        }
    }
}

fn error(description: &str) -> Response {
    let body = ContentBuilder::new().schema(Some(Ref::from_schema_name("ErrorBody"))).build();
    ResponseBuilder::new().description(description).content("application/json", body).build()
}

fn with(mut response: Response, name: &str, header: Header) -> Response {
    response.headers.insert(name.to_owned(), header.into());
    response
}

fn text(description: &str) -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::String);
    HeaderBuilder::new().schema(Some(schema)).description(Some(description)).build()
}

fn seconds() -> Header {
    let schema = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(0));
    HeaderBuilder::new().schema(Some(schema)).description(Some("Seconds")).build()
}

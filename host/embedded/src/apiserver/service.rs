//! The handling of HTTP requests.

use super::call::{Accept, Call, Query};
use super::failure::Failure;
use super::present::{self, Body};
use super::route::Target;
use super::verbs::{self, Part};
use super::{ApiServer, discovery, input};
use bytes::Bytes;
use futures::future::BoxFuture;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, HeaderName, Method, Request, Response};
use http_body_util::{BodyExt, Limited};
use std::convert::Infallible;
use std::task::{Context, Poll};
use tokio_util::sync::CancellationToken;
use tower::{BoxError, Service};

impl<B> Service<Request<B>> for ApiServer
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let server = self.clone();
        Box::pin(async move { Ok(server.answer(request, CancellationToken::new()).await) })
    }
}

impl ApiServer {
    /// Answers one request. The answer to a failed request is a `Status`.
    pub(super) async fn answer<B>(&self, request: Request<B>, shutdown: CancellationToken) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        let answer = async { self.try_answer(&head, read(body).await?, shutdown).await };
        match answer.await {
            Ok(response) => response,
            Err(failure) => {
                if failure.code().is_server_error() {
                    tracing::warn!(?failure, "a request failed");
                }
                present::failure(&failure)
            }
        }
    }

    async fn try_answer(
        &self,
        head: &Parts,
        body: Bytes,
        shutdown: CancellationToken,
    ) -> Result<Response<Body>, Failure> {
        let Some(target) = Target::parse(head.uri.path()) else {
            return discovery::answer(self, head.uri.path(), &head.method);
        };
        let call = Call {
            resource: self
                .0
                .registry
                .find(target.group, target.version, target.plural)
                .ok_or_else(Failure::no_route)?,
            server: self.0.clone(),
            namespace: target.namespace.map(str::to_owned),
            query: Query::parse(head.uri.query()),
            accept: Accept::negotiate(header(&head.headers, &ACCEPT))?,
            shutdown,
            content_type: media_type(&head.headers),
            body,
        };
        if target.namespace.is_some() && !call.resource.namespaced {
            return Err(Failure::no_route());
        }
        dispatch(&call, &head.method, &target).await
    }
}

async fn dispatch(call: &Call, method: &Method, target: &Target<'_>) -> Result<Response<Body>, Failure> {
    match (method.as_str(), target.name, target.subresource) {
        ("GET", None, _) if call.query.flag("watch") => verbs::watch(call),
        ("GET", None, _) => verbs::list(call),
        ("POST", None, _) => verbs::create(call).await,
        ("DELETE", None, _) => verbs::delete_collection(call).await,
        ("GET", Some(name), None) => verbs::get(call, name),
        ("PUT", Some(name), None) => verbs::replace(call, name, Part::Main).await,
        ("PATCH", Some(name), None) => verbs::patch(call, name, Part::Main).await,
        ("DELETE", Some(name), None) => verbs::delete(call, name).await,
        (_, Some(name), Some(part)) => subresource(call, method, name, part).await,
        _ => Err(Failure::method_not_allowed()),
    }
}

async fn subresource(
    call: &Call,
    method: &Method,
    name: &str,
    part: &str,
) -> Result<Response<Body>, Failure> {
    if matches!(part, "exec" | "attach" | "portforward" | "proxy") && call.resource.is_core("pods") {
        return Err(Failure::not_implemented(format!("{part} is not served by this API server")));
    }
    if !call.resource.subresources.contains(&part) {
        return Err(Failure::no_route());
    }
    match (part, method.as_str()) {
        ("status", "GET") => verbs::get(call, name),
        ("status", "PUT") => verbs::replace(call, name, Part::Status).await,
        ("status", "PATCH") => verbs::patch(call, name, Part::Status).await,
        ("finalize", "PUT") => verbs::replace(call, name, Part::Main).await,
        ("log", "GET") => verbs::log(call, name).await,
        ("binding", "POST") => verbs::bind(call, name).await,
        _ => Err(Failure::method_not_allowed()),
    }
}

async fn read<B>(body: B) -> Result<Bytes, Failure>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    match Limited::new(body, input::BODY_LIMIT).collect().await {
        Ok(collected) => Ok(collected.to_bytes()),
        Err(error) if error.is::<http_body_util::LengthLimitError>() => {
            Err(Failure::too_large(input::BODY_LIMIT))
        }
        Err(error) => Err(Failure::bad_request(format!("cannot read the body: {error}"))),
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// Returns the `Content-Type` without its parameters.
fn media_type(headers: &HeaderMap) -> String {
    let full = header(headers, &CONTENT_TYPE).unwrap_or_default();
    full.split(';').next().unwrap_or_default().trim().to_owned()
}

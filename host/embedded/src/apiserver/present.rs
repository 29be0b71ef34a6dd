//! Objects and lists as clients want them.

use super::call::{Accept, Call};
use super::failure::Failure;
use super::metadata::Document;
use super::resource::Resource;
use super::store::Object;
use super::table::{self, Include, partial};
use bytes::{BufMut, Bytes, BytesMut};
use futures::stream::{Stream, TryStreamExt};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;

/// The body of an answer: bytes at once, or a stream that goes on while the client listens.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

/// An answer with these bytes of JSON.
pub(super) fn json_bytes(code: StatusCode, json: impl Into<Bytes>) -> Response<Body> {
    let mut response = text("application/json", json);
    *response.status_mut() = code;
    response
}

pub(super) fn text(content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    let body = Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync();
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// An answer that is written piece by piece.
pub(super) fn stream(
    content_type: &'static str,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Response<Body> {
    let mut response = Response::new(StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync());
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

pub(super) fn json(code: StatusCode, value: &Value) -> Response<Body> {
    json_bytes(code, value.to_string())
}

/// The answer to a request that failed.
pub(super) fn failure(failure: &Failure) -> Response<Body> {
    json(failure.code(), &failure.to_status())
}

pub(super) fn object(call: &Call, code: StatusCode, object: &Arc<Object>) -> Response<Body> {
    match call.accept {
        Accept::Json => json_bytes(code, object.json()),
        Accept::Metadata => json(code, &partial(object)),
        Accept::Table => {
            let columns = table::columns(&call.resource);
            let rows = [table::row(&columns, object, include(call))];
            json(
                code,
                &table::table(
                    Some(&columns),
                    &rows,
                    &json!({"resourceVersion": object.revision().to_string()}),
                ),
            )
        }
    }
}

/// Where a list stands.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) revision: u64,
    /// The token of the next page.
    pub(super) next: Option<String>,
    /// How many objects follow, when it is known.
    pub(super) remaining: Option<usize>,
}

impl Page {
    fn metadata(&self) -> Value {
        let mut metadata = json!({"resourceVersion": self.revision.to_string()});
        if let Some(next) = &self.next {
            metadata["continue"] = json!(next);
        }
        if let Some(remaining) = self.remaining {
            metadata["remainingItemCount"] = json!(remaining);
        }
        metadata
    }
}

/// An answer with a list of objects.
pub(super) fn list(call: &Call, page: &Page, objects: &[Arc<Object>]) -> Response<Body> {
    match call.accept {
        Accept::Table => {
            let columns = table::columns(&call.resource);
            let include = include(call);
            let rows: Vec<_> = objects.iter().map(|object| table::row(&columns, object, include)).collect();
            json(StatusCode::OK, &table::table(Some(&columns), &rows, &page.metadata()))
        }
        Accept::Metadata => {
            let items = objects.iter().map(|object| Bytes::from(partial(object).to_string()));
            assemble("PartialObjectMetadataList", "meta.k8s.io/v1", page, items)
        }
        Accept::Json => {
            let kind = format!("{}List", call.resource.kind);
            assemble(&kind, &call.resource.api_version(), page, objects.iter().map(|object| object.json()))
        }
    }
}

/// Joins the objects' JSON, which is there already, instead of writing it anew.
fn assemble(
    kind: &str,
    api_version: &str,
    page: &Page,
    items: impl Iterator<Item = Bytes>,
) -> Response<Body> {
    let (kind, version, metadata) = (json!(kind), json!(api_version), page.metadata());
    let head = format!(r#"{{"kind":{kind},"apiVersion":{version},"metadata":{metadata},"items":["#);
    let mut out = BytesMut::from(head.as_str());
    for (i, item) in items.enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        out.put(item);
    }
    out.put_slice(b"]}");
    json_bytes(StatusCode::OK, out)
}

/// An event of a watch about an object, one line of JSON.
pub(super) fn event(kind: &str, json: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(json.len() + 32);
    out.put(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
    out.put(json);
    out.put_slice(b"}\n");
    out.freeze()
}

/// What the client wants the rows of a table to carry.
pub(super) fn include(call: &Call) -> Include {
    match call.query.text("includeObject") {
        Some("None") => Include::Nothing,
        Some("Object") => Include::Object,
        _ => Include::Metadata,
    }
}

/// A `Status` of a request that succeeded.
pub(super) fn success(resource: &Resource, name: &str, object: &Document) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success",
        "details": {
            "name": name, "group": resource.group, "kind": resource.plural,
            "uid": super::metadata::uid(object),
        },
    })
}

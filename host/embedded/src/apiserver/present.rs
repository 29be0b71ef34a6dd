//! Answers with objects and lists, in the form that the client requests.

use super::call::{Accept, Call};
use super::failure::Failure;
use super::metadata::Document;
use super::resource::Resource;
use super::store::Object;
use super::table::{self, Column};
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

/// The body of an answer: complete bytes, or a stream that continues while the client listens.
pub type Body = UnsyncBoxBody<Bytes, io::Error>;

fn with_type(content_type: &'static str, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// Creates an answer with these bytes of JSON.
pub(super) fn json_bytes(code: StatusCode, json: impl Into<Bytes>) -> Response<Body> {
    let mut response = text("application/json", json);
    *response.status_mut() = code;
    response
}

pub(super) fn text(content_type: &'static str, bytes: impl Into<Bytes>) -> Response<Body> {
    with_type(content_type, Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync())
}

/// Creates an answer that is written piece by piece.
pub(super) fn stream(
    content_type: &'static str,
    pieces: impl Stream<Item = io::Result<Bytes>> + Send + 'static,
) -> Response<Body> {
    with_type(content_type, StreamBody::new(pieces.map_ok(Frame::data)).boxed_unsync())
}

pub(super) fn json(code: StatusCode, value: &Value) -> Response<Body> {
    json_bytes(code, value.to_string())
}

/// Creates the answer to a request that failed.
pub(super) fn failure(failure: &Failure) -> Response<Body> {
    json(failure.code(), &failure.to_status())
}

/// The form in which a client wants objects.
pub(super) enum Form {
    Json,
    Metadata,
    /// A table with these columns. True if the rows carry whole objects, and false if only their metadata.
    Table(Vec<Column>, bool),
}

impl Form {
    pub(super) fn from_call(call: &Call) -> Self {
        match call.accept {
            Accept::Json => Self::Json,
            Accept::Metadata => Self::Metadata,
            Accept::Table => {
                let whole = call.query.text("includeObject") == Some("Object");
                Self::Table(table::columns(&call.resource), whole)
            }
        }
    }

    /// Formats one object. A table states its columns only if `with_columns` is true.
    pub(super) fn one(&self, object: &Arc<Object>, with_columns: bool) -> Bytes {
        match self {
            Self::Json => object.json(),
            Self::Metadata => table::partial(object.document().get("metadata")).to_string().into(),
            Self::Table(columns, whole) => {
                let metadata = json!({"resourceVersion": object.revision().to_string()});
                let rows = [table::row(columns, object, *whole)];
                let columns = if with_columns { columns.as_slice() } else { &[] };
                table::table(columns, &rows, &metadata).to_string().into()
            }
        }
    }
}

pub(super) fn object(call: &Call, code: StatusCode, object: &Arc<Object>) -> Response<Body> {
    json_bytes(code, Form::from_call(call).one(object, true))
}

/// The position of a page in a list.
#[derive(Debug, Default)]
pub(super) struct Page {
    pub(super) revision: u64,
    /// The token of the next page.
    pub(super) next: Option<String>,
    /// The number of objects that follow, if it is known.
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

/// Creates an answer with a list of objects. The stored JSON of whole objects is concatenated, and not made again.
pub(super) fn list(call: &Call, page: &Page, objects: &[Arc<Object>]) -> Response<Body> {
    let form = Form::from_call(call);
    let (kind, version) = match &form {
        Form::Table(columns, whole) => {
            let rows: Vec<_> = objects.iter().map(|object| table::row(columns, object, *whole)).collect();
            return json(StatusCode::OK, &table::table(columns, &rows, &page.metadata()));
        }
        Form::Metadata => (json!("PartialObjectMetadataList"), json!("meta.k8s.io/v1")),
        Form::Json => (json!(format!("{}List", call.resource.kind)), json!(call.resource.api_version())),
    };
    let metadata = page.metadata();
    let head = format!(r#"{{"kind":{kind},"apiVersion":{version},"metadata":{metadata},"items":["#);
    let mut out = BytesMut::from(head.as_str());
    for (i, object) in objects.iter().enumerate() {
        if i > 0 {
            out.put_u8(b',');
        }
        out.put(form.one(object, false));
    }
    out.put_slice(b"]}");
    json_bytes(StatusCode::OK, out)
}

/// Formats a watch event about an object as one line of JSON.
pub(super) fn event(kind: &str, json: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(json.len() + 32);
    out.put(format!(r#"{{"type":"{kind}","object":"#).as_bytes());
    out.put(json);
    out.put_slice(b"}\n");
    out.freeze()
}

/// Returns the `Status` of a request that succeeded.
pub(super) fn success(resource: &Resource, name: &str, object: &Document) -> Value {
    json!({
        "apiVersion": "v1", "kind": "Status", "metadata": {}, "status": "Success",
        "details": {
            "name": name, "group": resource.group, "kind": resource.plural,
            "uid": super::metadata::uid(object),
        },
    })
}

//! `PATCH`: an object changed by what is sent.

use super::update::update;
use crate::apiserver::body::Body;
use crate::apiserver::call::Call;
use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::Document;
use crate::apiserver::{input, present};
use http::{Response, StatusCode};
use serde_json::Value;

pub(in crate::apiserver) async fn patch(
    call: &Call,
    name: &str,
    status: bool,
) -> Result<Response<Body>, Failure> {
    let body = input::parse(&call.body)?;
    let object = match call.content_type.as_str() {
        "application/merge-patch+json" => {
            update(call, name, status, |old| {
                let mut value = Value::Object(old.clone());
                json_patch::merge(&mut value, &body);
                patched(call, value, name)
            })
            .await?
        }
        _ => return Err(Failure::unsupported_media_type("application/merge-patch+json")),
    };
    Ok(present::object(call, StatusCode::OK, &object))
}

fn patched(call: &Call, value: Value, name: &str) -> Result<Document, Failure> {
    match value {
        Value::Object(document) => input::accept(call, document, Some(name)),
        _ => Err(Failure::bad_request("the patch does not leave an object")),
    }
}

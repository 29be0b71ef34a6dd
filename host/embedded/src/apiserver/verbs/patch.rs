//! `PATCH`: an object changed by what is sent; applied, it is made when it is not there.

use super::create::create_object;
use super::update::{Change, Part, update};
use crate::apiserver::body::Body;
use crate::apiserver::call::Call;
use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::{self, Document};
use crate::apiserver::patch::{Applied, Patch, apply};
use crate::apiserver::store::Object;
use crate::apiserver::{input, present};
use http::{Response, StatusCode};
use std::sync::Arc;

pub(in crate::apiserver) async fn patch(
    call: &Call,
    name: &str,
    part: Part,
) -> Result<Response<Body>, Failure> {
    let patch = Patch::parse(&call.resource, &call.content_type, &call.body)?;
    if let Patch::Apply(config) = patch {
        let (code, object) = apply_object(call, name, part, config).await?;
        return Ok(present::object(call, code, &object));
    }
    let change = |old: &Document| {
        let new = patch.change(&call.resource, old)?;
        input::accept(call, new, Some(name)).map(Change::By)
    };
    let object = update(call, name, part, change).await?;
    Ok(present::object(call, StatusCode::OK, &object))
}

async fn apply_object(
    call: &Call,
    name: &str,
    part: Part,
    config: Document,
) -> Result<(StatusCode, Arc<Object>), Failure> {
    let Some(manager) = call.query.text("fieldManager") else {
        return Err(Failure::bad_request(
            "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: Required value: is required for apply patch",
        ));
    };
    if metadata::field(&config, "managedFields").is_some() {
        return Err(Failure::bad_request("metadata.managedFields must be nil"));
    }
    let config = input::accept(call, config, Some(name))?;
    let force = call.query.flag("force");
    let applied = Applied { config: &config, manager, force, status: part == Part::Status };
    let schema = &call.resource.schema;
    loop {
        let here = call.server.store.get(&call.resource.collection, &call.key(name)).is_some();
        if here || part == Part::Status {
            let change = |old: &Document| {
                let merged = apply(old, &applied, schema)?;
                input::decode(call, merged).map(Change::Applied)
            };
            let object = update(call, name, part, change).await?;
            return Ok((StatusCode::OK, object));
        }
        let document = apply(&Document::new(), &applied, schema)?;
        match create_object(call, document).await {
            // Somebody else has just made it: apply to that one.
            Err(failure) if failure.is_already_exists() => {}
            result => return result.map(|object| (StatusCode::CREATED, object)),
        }
    }
}

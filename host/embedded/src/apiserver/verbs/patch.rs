//! `PATCH`: an object changed by what is sent; applied, it is made when it is not there.

use super::create::create_object;
use super::update::{Part, update};
use crate::apiserver::call::Call;
use crate::apiserver::failure::Failure;
use crate::apiserver::metadata::Document;
use crate::apiserver::patch::Patch;
use crate::apiserver::present::Body;
use crate::apiserver::{input, present};
use http::{Response, StatusCode};

pub(in crate::apiserver) async fn patch(
    call: &Call,
    name: &str,
    part: Part,
) -> Result<Response<Body>, Failure> {
    let patch = Patch::parse(&call.resource, &call.content_type, &call.body)?;
    let change = |old: &Document| input::accept(call, patch.change(&call.resource, old)?, Some(name));
    if let Patch::Apply(config) = &patch {
        if !call.query.flag("force") {
            return Err(Failure::not_implemented(
                "server-side apply needs force=true: this API server does not note who owns a field",
            ));
        }
        if part != Part::Status && call.server.store.get(&call.resource.collection, &call.key(name)).is_none()
        {
            match create_object(call, input::accept(call, config.clone(), Some(name))?).await {
                // Somebody else has just made it: apply to that one.
                Err(failure) if failure.is_already_exists() => {}
                created => return Ok(present::object(call, StatusCode::CREATED, &created?)),
            }
        }
    }
    let object = update(call, name, part, change).await?;
    Ok(present::object(call, StatusCode::OK, &object))
}

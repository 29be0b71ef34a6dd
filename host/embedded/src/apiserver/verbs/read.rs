//! `GET`: an object, or a list of them, in pages.

use crate::apiserver::call::Call;
use crate::apiserver::failure::Failure;
use crate::apiserver::present::{self, Body, Page};
use crate::apiserver::selector::Selector;
use crate::apiserver::store::Key;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Response, StatusCode};

pub(crate) fn get(call: &Call, name: &str) -> Result<Response<Body>, Failure> {
    let object = call.server.store.get(&call.resource.collection, &call.key(name));
    let object = object.ok_or_else(|| call.resource.not_found(name))?;
    Ok(present::object(call, StatusCode::OK, &object))
}

pub(crate) fn list(call: &Call) -> Result<Response<Body>, Failure> {
    let selector = Selector::parse(&call.query, &call.resource)?;
    let limit = call.query.value::<usize>("limit")?.filter(|limit| *limit > 0);
    let token = call.query.text("continue").map(Token::decode).transpose()?;
    if token.is_none() {
        check_revision(call)?;
    }
    let (from, at) = token.as_ref().map(|token| (&token.after, token.revision)).unzip();
    let (revision, mut objects) =
        call.server.store.list(&call.resource.collection, call.namespace.as_deref(), from, at)?;
    objects.retain(|object| selector.matches(object.document()));
    let mut page = Page { revision, ..Page::default() };
    if let Some(limit) = limit
        && objects.len() > limit
    {
        page.remaining = Some(objects.len() - limit);
        objects.truncate(limit);
        page.next = objects.last().map(|last| Token { revision: page.revision, after: last.key() }.encode());
    }
    Ok(present::list(call, &page, &objects))
}

/// Fails if the list would be older than the client wants. A list is always of the newest revision, because nothing is
/// cached.
fn check_revision(call: &Call) -> Result<(), Failure> {
    let asked = call.query.value::<u64>("resourceVersion")?.unwrap_or(0);
    let current = call.server.store.read().revision();
    match call.query.text("resourceVersionMatch") {
        None | Some("NotOlderThan") if asked > current => Err(Failure::too_large_revision(asked, current)),
        None | Some("NotOlderThan") => Ok(()),
        Some(other) => Err(Failure::bad_request(format!("resourceVersionMatch {other:?} is not supported"))),
    }
}

/// A continue token: the beginning of the next page, and the revision of all pages.
struct Token {
    revision: u64,
    after: Key,
}

impl Token {
    fn encode(&self) -> String {
        URL_SAFE_NO_PAD.encode(format!("{}/{}/{}", self.revision, self.after.namespace, self.after.name))
    }

    fn decode(text: &str) -> Result<Self, Failure> {
        let read = || {
            let text = String::from_utf8(URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
            let mut parts = text.splitn(3, '/');
            let revision = parts.next()?.parse().ok()?;
            Some(Self { revision, after: Key::new(parts.next()?, parts.next()?) })
        };
        read().ok_or_else(|| Failure::bad_request("continue key is not valid"))
    }
}

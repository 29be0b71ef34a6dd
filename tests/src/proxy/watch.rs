//! A watch that passes through the proxy.

use std::sync::Arc;

use axum::body::{Body, BodyDataStream, Bytes};
use futures::StreamExt as _;
use serde_json::json;
use tokio::sync::watch::Receiver;

use super::forward::{broken, status};
use super::{Fault, Shared};

/// The state of an open watch.
struct Open {
    shared: Arc<Shared>,
    line: String,
    upstream: BodyDataStream,
    changed: Receiver<()>,
    /// The end of the watch, after the data that was sent last.
    end: Option<End>,
}

/// The kind of end of a watch.
enum End {
    Orderly,
    Broken,
}

/// The body of a watch: the data of the API server, until a fault applies.
pub(super) fn body(shared: Arc<Shared>, line: String, upstream: Body) -> Body {
    let changed = shared.changed.subscribe();
    let open = Open { shared, line, upstream: upstream.into_data_stream(), changed, end: None };
    Body::from_stream(futures::stream::unfold(open, next))
}

async fn next(mut open: Open) -> Option<(anyhow::Result<Bytes>, Open)> {
    loop {
        match open.end.take() {
            Some(End::Orderly) => return None,
            Some(End::Broken) => {
                open.end = Some(End::Orderly);
                return Some((Err(broken()), open));
            }
            None => {}
        }
        match open.shared.fault_for(&open.line, Fault::is_of_open_watches) {
            Some(Fault::Expire) => {
                open.end = Some(End::Orderly);
                let event = json!({ "type": "ERROR", "object": status(410, "Expired") });
                return Some((Ok(Bytes::from(format!("{event}\n"))), open));
            }
            Some(Fault::Silence) => return std::future::pending().await,
            Some(_) => {
                open.end = Some(End::Broken);
                return Some((Ok(Bytes::from_static(b"{\"type\":\"MODIFIED\",\"obj")), open));
            }
            None => {}
        }
        tokio::select! {
            Ok(()) = open.changed.changed() => {}
            piece = open.upstream.next() => {
                let piece = piece?.map_err(anyhow::Error::from);
                return Some((piece, open));
            }
        }
    }
}

//! `GET ?watch`: a stream of changes.

use crate::apiserver::call::Call;
use crate::apiserver::failure::Failure;
use crate::apiserver::present::{self, Body, Form};
use crate::apiserver::resource::Resource;
use crate::apiserver::selector::Selector;
use crate::apiserver::store::{Change, ChangeKind, Object};
use crate::apiserver::table;
use crate::apiserver::{Server, metadata};
use bytes::Bytes;
use futures::stream;
use http::Response;
use serde_json::json;
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The duration of a watch without a time-out from the client. Clients start a new watch after it.
const MAX_WATCH: Duration = Duration::from_mins(45);
/// The period of the bookmarks for clients that want them.
const BOOKMARK_EVERY: Duration = Duration::from_mins(1);

pub(crate) fn watch(call: &Call) -> Result<Response<Body>, Failure> {
    let selector = Selector::parse(&call.query, &call.resource)?;
    let query = &call.query;
    let bookmarks = query.flag("allowWatchBookmarks");
    let initial = query.flag("sendInitialEvents");
    if initial && query.text("resourceVersionMatch") != Some("NotOlderThan") {
        return Err(Failure::bad_request("sendInitialEvents needs resourceVersionMatch=NotOlderThan"));
    }
    let asked = query.value::<u64>("resourceVersion")?.filter(|revision| *revision > 0);
    let timeout = query.value::<u64>("timeoutSeconds")?.filter(|t| *t > 0).map(Duration::from_secs);
    // The subscription starts before the first read, so that no change is missed in between.
    let tip = call.server.store.subscribe(&call.resource.collection);
    let mut watch = Watch {
        scope: Scope { namespace: call.namespace.clone(), selector },
        form: Form::from_call(call),
        columns_stated: false,
        server: call.server.clone(),
        resource: call.resource.clone(),
        tip,
        cursor: asked.unwrap_or(0),
        ready: VecDeque::new(),
        bookmarks,
        deadline: Instant::now() + timeout.unwrap_or(MAX_WATCH),
        shutdown: call.shutdown.clone(),
        ended: false,
    };
    match asked {
        // Fails at once if the changes since then are no longer remembered.
        Some(_) if !initial => drop(call.server.store.changes(&call.resource.collection, watch.cursor)?),
        _ => watch.begin_with_present(initial && bookmarks),
    }
    let events = stream::unfold(watch, |mut watch| async move {
        let event = watch.next().await?;
        Some((Ok::<_, io::Error>(event), watch))
    });
    Ok(present::stream("application/json", events))
}

/// A watch under way.
struct Watch {
    server: Arc<Server>,
    resource: Arc<Resource>,
    scope: Scope,
    form: Form,
    /// True once a table with columns has been sent. Only the first table of a watch has them.
    columns_stated: bool,
    tip: Receiver<u64>,
    /// The revision up to which changes have been sent.
    cursor: u64,
    /// The events to send next.
    ready: VecDeque<Bytes>,
    /// True if the client wants bookmarks, which tell it from time to time that it is up to date.
    bookmarks: bool,
    deadline: Instant,
    shutdown: CancellationToken,
    ended: bool,
}

/// The objects of a watch.
struct Scope {
    namespace: Option<String>,
    selector: Selector,
}

impl Scope {
    fn contains(&self, object: &Object) -> bool {
        let document = object.document();
        self.namespace.as_deref().is_none_or(|n| n == metadata::namespace(document))
            && self.selector.matches(document)
    }

    /// Returns the event type of a change for this watch. An object is added when it begins to match, and deleted when
    /// it stops matching.
    fn kind_of(&self, change: &Change) -> Option<&'static str> {
        let before = change.previous.as_deref().is_some_and(|object| self.contains(object));
        let after = change.kind != ChangeKind::Deleted && self.contains(&change.object);
        match (before, after) {
            (false, false) => None,
            (false, true) => Some("ADDED"),
            (true, true) => Some("MODIFIED"),
            (true, false) => Some("DELETED"),
        }
    }
}

impl Watch {
    fn event(&mut self, kind: &str, object: &Arc<Object>) -> Bytes {
        let first = !std::mem::replace(&mut self.columns_stated, true);
        present::event(kind, &self.form.one(object, first))
    }

    /// Queues an `ADDED` event for each object that exists now.
    fn begin_with_present(&mut self, mark_end: bool) {
        let listing =
            self.server.store.list(&self.resource.collection, self.scope.namespace.as_deref(), None, None);
        let Ok((revision, objects)) = listing else { return };
        self.cursor = revision;
        for object in &objects {
            if self.scope.contains(object) {
                let event = self.event("ADDED", object);
                self.ready.push_back(event);
            }
        }
        if mark_end {
            self.ready.push_back(self.bookmark(true));
        }
    }

    /// Returns the next event.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            self.tip.borrow_and_update();
            self.catch_up();
            if !self.ready.is_empty() {
                continue;
            }
            tokio::select! {
                changed = self.tip.changed() => {
                    if changed.is_err() {
                        return None;
                    }
                }
                () = tokio::time::sleep(BOOKMARK_EVERY), if self.bookmarks => {
                    let bookmark = self.bookmark(false);
                    self.ready.push_back(bookmark);
                }
                () = tokio::time::sleep_until(self.deadline) => self.ended = true,
                () = self.shutdown.cancelled() => self.ended = true,
            }
        }
    }

    fn catch_up(&mut self) {
        match self.server.store.changes(&self.resource.collection, self.cursor) {
            Ok((revision, changes)) => {
                for change in changes {
                    if let Some(kind) = self.scope.kind_of(&change) {
                        // An object that stopped matching is sent with the change's object, under the revision of the
                        // change.
                        let event = self.event(kind, &change.object);
                        self.ready.push_back(event);
                    }
                }
                self.cursor = self.cursor.max(revision);
            }
            Err(failure) => {
                let status = failure.to_status().to_string();
                self.ready.push_back(present::event("ERROR", status.as_bytes()));
                self.ended = true;
            }
        }
    }

    /// Creates a bookmark. It tells that the client is up to date, or that it has received all objects that existed at
    /// the start.
    fn bookmark(&self, end_of_initial: bool) -> Bytes {
        let mut metadata = json!({"resourceVersion": self.cursor.to_string(), "creationTimestamp": null});
        if end_of_initial {
            metadata["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        }
        let object = match self.form {
            Form::Json => {
                let (version, kind) = (self.resource.api_version(), &self.resource.kind);
                json!({"apiVersion": version, "kind": kind, "metadata": metadata})
            }
            Form::Metadata => table::partial(Some(&metadata)),
            Form::Table(..) => {
                let row = json!({"cells": [], "object": table::partial(Some(&metadata))});
                table::table(&[], &[row], &json!({"resourceVersion": self.cursor.to_string()}))
            }
        };
        present::event("BOOKMARK", object.to_string().as_bytes())
    }
}

//! Objects as rows for humans: the `Table` of `meta.k8s.io/v1` that `kubectl get` prints.

mod age;
mod columns;
mod pod;
mod print;

pub(super) use columns::{Columns, columns};

use super::present::{Include, partial};
use super::store::Object;
use serde_json::{Value, json};
use std::sync::Arc;

/// A table of rows; the first one of a watch, and every other, states its columns.
pub(super) fn table(
    columns: Option<&Columns>,
    rows: &[Value],
    revision: &str,
    next: Option<&str>,
    remaining: Option<usize>,
) -> Value {
    let mut table = json!({
        "apiVersion": "meta.k8s.io/v1", "kind": "Table",
        "metadata": {"resourceVersion": revision},
        "columnDefinitions": columns.map_or_else(|| json!([]), Columns::definitions),
        "rows": rows,
    });
    if let Some(next) = next {
        table["metadata"]["continue"] = json!(next);
    }
    if let Some(remaining) = remaining {
        table["metadata"]["remainingItemCount"] = json!(remaining);
    }
    table
}

/// The row of an object.
pub(super) fn row(columns: &Columns, object: &Arc<Object>, include: Include) -> Value {
    let mut row = json!({"cells": columns.cells(object.document())});
    match include {
        Include::Nothing => {}
        Include::Metadata => row["object"] = partial(object),
        Include::Object => row["object"] = json!(object.document()),
    }
    row
}

//! Site data that policies read with `host.data`.

mod datum;
mod documents;
mod live;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) use datum::Datum;
pub(crate) use documents::Documents;
pub use live::DataReport;
pub(crate) use live::LiveData;

/// The data of one policy at one moment, by name.
pub(crate) type SiteData = Arc<BTreeMap<String, Datum>>;

//! Data of the site that policies read with `host.data`.

mod datum;
mod documents;
mod live;

use std::collections::BTreeMap;
use std::sync::Arc;

pub(super) use datum::Datum;
pub(super) use documents::Documents;
pub use live::DataReport;
pub(super) use live::LiveData;

/// The data of one policy at one moment, by name.
pub(super) type SiteData = Arc<BTreeMap<String, Datum>>;

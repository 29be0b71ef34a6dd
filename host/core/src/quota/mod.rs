//! How much one user may have: quantities, and limits from several sources merged.

mod limits;

pub use limits::{Quota, Usage};

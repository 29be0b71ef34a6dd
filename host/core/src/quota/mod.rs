//! How much one user may have: quantities, and limits from several sources merged.

mod limits;
mod quantity;

pub use limits::{Quota, TooManyLabs, Usage};
pub use quantity::{InvalidQuantity, Quantity};

//! The limits of a user: quantities, and quotas from several sources.

mod limits;
mod quantity;
mod share;
mod user;

pub use limits::{Quota, TooManyLabs, Usage};
pub use quantity::{InvalidQuantity, Quantity};
pub use share::{QuotaUsedUp, Share};
pub use user::{SpawningForbidden, UserQuota};

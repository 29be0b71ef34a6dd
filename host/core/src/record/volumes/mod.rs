//! Volume claims: their owners and sizes, the claims that each server uses, and their fate when the server is deleted.
//!
//! A claim outlives labs, so this information cannot be read from a lab's objects.

mod growth;
mod owner;
mod record;
mod remembered;

pub use growth::{Growth, kept_by};
pub use owner::{KUBESPAWNER_USERNAME_ANNOTATION, other_owner, owner};
pub use record::{ClaimUse, VolumeRecord};
pub use remembered::{Kept, Release, RememberedVolumes};

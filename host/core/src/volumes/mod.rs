//! What the service remembers of volume claims: which server uses which, and what becomes of them with it.
//!
//! A claim outlives labs, so what is known of it cannot be read off a lab's objects.

mod owner;
mod record;
mod remembered;

pub use owner::{KUBESPAWNER_USERNAME_ANNOTATION, owner};
pub use record::{ClaimUse, VolumeRecord};
pub use remembered::{Kept, Release, RememberedVolumes};

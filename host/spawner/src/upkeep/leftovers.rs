//! What labs leave behind, for administrators.

use crate::labs::Labs;

/// What labs leave behind: objects that stay on purpose, objects that belong to no lab, and labs that JupyterHub has
/// forgotten. Clones share it.
#[derive(Clone)]
pub struct Leftovers(pub(super) Labs);

impl Leftovers {
    /// Creates the view of what these labs leave behind.
    pub fn new(labs: Labs) -> Self {
        Self(labs)
    }
}

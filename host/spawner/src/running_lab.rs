//! The lab whose child is to be started.

use std::sync::Arc;

use wasmspawner_core::manifest::ParentPod;
use wasmspawner_core::record::{LabDescription, Place};

/// A lab that runs, as far as its children need to know it.
pub(super) struct RunningLab {
    pub(super) place: Place,
    pub(super) pod: ParentPod,
    pub(super) description: Arc<LabDescription>,
}

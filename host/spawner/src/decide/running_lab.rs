//! The lab whose child is to be started.

use std::sync::Arc;

use wasmspawner_core::manifest::ParentPod;
use wasmspawner_core::record::{LabDescription, Place};

/// A lab that runs, as far as its children need to know it.
pub(crate) struct RunningLab {
    pub(crate) place: Place,
    pub(crate) pod: ParentPod,
    pub(crate) description: Arc<LabDescription>,
}

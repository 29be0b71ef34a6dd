//! The lab whose child is to be started.

use std::sync::Arc;

use wasmspawner_core::manifest::ParentPod;
use wasmspawner_core::record::{LabDescription, Place};

/// The parts of a running lab that its children need.
pub(crate) struct RunningLab {
    pub(crate) place: Place,
    pub(crate) pod: ParentPod,
    pub(crate) description: Arc<LabDescription>,
}

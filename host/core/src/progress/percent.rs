//! How far along a stage is.

use crate::stage::Stage;

/// The progress at which a spawn enters a stage, 0 to 100. The share of each stage is what it usually takes: pulling
/// an image and starting the lab are what people wait for.
pub fn percent(stage: Stage) -> u8 {
    match stage {
        Stage::Unknown => 0,
        Stage::Scheduling => 25,
        Stage::Pulling => 35,
        Stage::Initializing => 55,
        Stage::Starting => 70,
        Stage::Running | Stage::Stopped | Stage::Failed => 100,
        Stage::Terminating => 50,
    }
}

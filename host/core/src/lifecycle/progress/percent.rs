//! The percentage of each stage.

use crate::lifecycle::stage::Stage;

/// Returns the progress in percent at which a spawn enters a stage. Each stage's share is its usual share of the time:
/// pulling an image and starting the lab take longest. A spawn that enters one of the last stages is over.
pub fn percent(stage: Stage) -> u8 {
    match stage {
        Stage::Unknown => 0,
        Stage::Binding => 8,
        Stage::Scheduling => 25,
        Stage::Pulling => 35,
        Stage::Initializing => 55,
        Stage::Starting => 70,
        Stage::Running | Stage::Terminating | Stage::Stopped | Stage::Failed => 100,
    }
}

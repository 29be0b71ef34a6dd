use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::TimeLimits;

use crate::duration;

/// Reads the time limits for starting and stopping a lab. Without them the service's limits apply.
pub(super) fn read(lab: &mut Section<'_>) -> Option<TimeLimits> {
    let mut seconds = |key| {
        let seconds = |text: &str| {
            let seconds = duration::seconds(text)?;
            u32::try_from(seconds).map_err(|_| format!("`{text}` is longer than a lab may take"))
        };
        lab.parsed(key, seconds)
    };
    let limits =
        TimeLimits { spawn_seconds: seconds("spawnTimeout"), delete_seconds: seconds("deleteTimeout") };
    (limits.spawn_seconds.is_some() || limits.delete_seconds.is_some()).then_some(limits)
}

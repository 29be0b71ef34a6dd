//! Configuration files, which are the operator's: a mistake is an error, and never a panic.

#![no_main]

use libfuzzer_sys::fuzz_target;
use wasmspawner_core::config::ConfigFile;

fuzz_target!(|text: &str| {
    let Ok(file) = serde_saphyr::from_str::<ConfigFile>(text) else { return };
    if let Err(problems) = file.validate() {
        assert!(problems.iter().all(|problem| !problem.to_string().is_empty()));
    }
});

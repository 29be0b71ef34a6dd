//! What a spawn request says: the submission of the form, and the names of variables.

#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::{Map, Value};
use wasmspawner_core::names::EnvName;
use wasmspawner_core::policy::form;

fuzz_target!(|body: &[u8]| {
    let Ok(submission) = serde_json::from_slice::<Map<String, Value>>(body) else { return };
    match form::options(&submission) {
        Ok(options) => assert_eq!(options.len(), submission.len()),
        Err(errors) => assert!(errors.iter().all(|error| submission.contains_key(&error.field))),
    }
    for name in submission.keys() {
        if let Ok(name) = EnvName::parse(name.as_str()) {
            assert!(!name.as_str().is_empty() && !name.as_str().contains(['=', '\0']));
        }
    }
});

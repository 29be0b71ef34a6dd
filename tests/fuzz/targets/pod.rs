//! Pods and events as a cluster may report them.

#![no_main]

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use libfuzzer_sys::fuzz_target;
use wasmspawner_core::lifecycle::stage::{ObservedPod, StagePolicy, analyze};

fuzz_target!(|reported: &[u8]| {
    let Ok((pod, events)) = serde_json::from_slice::<(Pod, Vec<Event>)>(reported) else { return };
    let now = Timestamp::UNIX_EPOCH;
    let analysis = analyze(Some(&ObservedPod::from(&pod)), &events, &StagePolicy::default(), now);
    assert!(analysis.findings.iter().all(|finding| finding.count > 0));
});

//! Answers of policies: whatever they are, a policy without grants gets no privileges, with and without a granted patch.

#![no_main]
#![allow(clippy::panic, reason = "a finding is reported by panicking")]

#[path = "../../../host/core/tests/manifest/case.rs"]
#[allow(dead_code, clippy::unwrap_used, reason = "shared with the tests of the core")]
mod case;
#[path = "../../../host/core/tests/manifest/unprivileged.rs"]
mod unprivileged;

use case::{Case, CaseAnswer, TOKEN};
use libfuzzer_sys::fuzz_target;
use wasmspawner_core::manifest::{LabObject, build};
use wasmspawner_core::policy::{Customization, Grants, LabServer};

fuzz_target!(|answers: &[u8]| {
    let Ok(answers) = serde_json::from_slice::<Vec<Customization>>(answers) else { return };
    for pod_patch in [vec![], vec!["spec".to_owned(), "metadata".to_owned()]] {
        let grants = Grants { pod_patch, ..Grants::default() };
        let mut case = Case::read("{identity: {username: ada, uid: 1000, gid: 1000}, lab: {image: 'lab:1'}}");
        let answer = |(at, customization): (usize, &Customization)| CaseAnswer {
            is_blueprint: false,
            policy: format!("p{at}"),
            grants: grants.clone(),
            customization: customization.clone(),
            server: LabServer::default(),
            files: Vec::new(),
        };
        case.answers = answers.iter().enumerate().map(answer).collect();
        let Ok(spawn) = case.compose() else { continue };
        let objects = build(&spawn);
        if let Err(problem) = unprivileged::check_unprivileged(&objects) {
            panic!("{problem}");
        }
        let public = objects.in_order().filter(|object| !matches!(object, LabObject::Secret(_)));
        assert!(!public.map(|object| object.to_value().to_string()).any(|text| text.contains(TOKEN)));
    }
});

//! Pods and events as clusters produce them, and the expected stages: `tests/stages/*.yaml`.

use std::path::PathBuf;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Event, Pod};
use serde::Deserialize;
use wasmspawner_core::lifecycle::stage::{ObservedPod, Severity, Stage, StagePolicy, analyze};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fixture {
    #[serde(default)]
    policy: PolicyCase,
    pod: Option<Pod>,
    events: Vec<Event>,
    cases: Vec<Case>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PolicyCase {
    image_pull_failures: Option<u32>,
    #[serde(default)]
    was_ready: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Case {
    now: Timestamp,
    stage: Stage,
    reason: String,
    /// The worst severity among the findings.
    worst: Option<Severity>,
    /// A part of the message.
    says: Option<String>,
    exit_code: Option<i32>,
    recheck_at: Option<Timestamp>,
}

#[test]
fn every_fixture_gives_its_stage() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/stages");
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 30, "fixtures are missing");
    for file in files {
        let name = file.file_stem().unwrap().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file).unwrap();
        let fixture: Fixture =
            serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        check(&name, &fixture);
    }
}

fn check(name: &str, fixture: &Fixture) {
    let mut policy = StagePolicy { was_ready: fixture.policy.was_ready, ..StagePolicy::default() };
    if let Some(failures) = fixture.policy.image_pull_failures {
        policy.image_pull_failures = failures;
    }
    for case in &fixture.cases {
        let analysis =
            analyze(fixture.pod.as_ref().map(ObservedPod::from).as_ref(), &fixture.events, &policy, case.now);
        assert_eq!(
            (analysis.stage, analysis.reason.as_str()),
            (case.stage, case.reason.as_str()),
            "{name}: {analysis:#?}"
        );
        let worst = analysis.findings.iter().map(|finding| finding.severity).max();
        match case.worst {
            Some(expected) => assert_eq!(worst, Some(expected), "{name}: {analysis:#?}"),
            None => assert!(worst <= Some(Severity::Info), "{name}: {analysis:#?}"),
        }
        assert_eq!(analysis.recheck_at, case.recheck_at, "{name}: {analysis:#?}");
        if let Some(expected) = case.exit_code {
            assert_eq!(analysis.exit_code, Some(expected), "{name}: {analysis:#?}");
        }
        let says = case.says.as_deref().unwrap_or_default();
        assert!(analysis.message.contains(says), "{name}: {:?} does not say {says:?}", analysis.message);
        assert!(analysis.findings.iter().all(|finding| finding.count > 0), "{name}: {analysis:#?}");
    }
}

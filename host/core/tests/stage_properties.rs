//! Properties of the analysis for every pod and all events, including ones that no cluster produces.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{
    Container, ContainerState, ContainerStateRunning, ContainerStateTerminated, ContainerStateWaiting,
    ContainerStatus, Event, ObjectReference, Pod, PodCondition, PodSpec, PodStatus,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;
use wasmspawner_core::lifecycle::stage::{ObservedPod, Severity, Stage, StagePolicy, analyze};

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn word() -> impl Strategy<Value = String> {
    select(vec![
        "",
        "Pulling",
        "Pulled",
        "Failed",
        "BackOff",
        "FailedScheduling",
        "FailedBinding",
        "FailedMount",
        "Unhealthy",
        "NodeNotReady",
        "ErrImagePull",
        "ImagePullBackOff",
        "InvalidImageName",
        "CreateContainerConfigError",
        "CrashLoopBackOff",
        "ContainerCreating",
        "PodInitializing",
        "OOMKilled",
        "Error",
        "Completed",
        "Evicted",
        "ü",
    ])
    .prop_map(str::to_owned)
}

fn time() -> impl Strategy<Value = Option<Time>> {
    of(prop_oneof![-120_i64..120, Just(i64::MIN / 2), Just(i64::MAX / 2)]).prop_map(|offset| {
        let offset = SignedDuration::from_secs(offset?);
        Some(Time(NOW.checked_add(offset).unwrap_or(if offset.is_negative() {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        })))
    })
}

fn state() -> impl Strategy<Value = Option<ContainerState>> {
    let waiting = (of(word()), of(".{0,20}")).prop_map(|(reason, message)| ContainerState {
        waiting: Some(ContainerStateWaiting { reason, message }),
        ..ContainerState::default()
    });
    let running =
        Just(ContainerState { running: Some(ContainerStateRunning::default()), ..ContainerState::default() });
    let terminated =
        (of(word()), any::<i32>(), of(any::<i32>())).prop_map(|(reason, exit_code, signal)| ContainerState {
            terminated: Some(ContainerStateTerminated {
                reason,
                exit_code,
                signal,
                ..ContainerStateTerminated::default()
            }),
            ..ContainerState::default()
        });
    of(prop_oneof![waiting, running, terminated])
}

fn name() -> impl Strategy<Value = String> {
    select(vec!["notebook", "init", "sidecar"]).prop_map(str::to_owned)
}

fn status() -> impl Strategy<Value = ContainerStatus> {
    (name(), any::<bool>(), of(any::<bool>()), -1..5_i32, state(), state()).prop_map(
        |(name, ready, started, restart_count, state, last_state)| ContainerStatus {
            name,
            ready,
            started,
            restart_count,
            state,
            last_state,
            ..ContainerStatus::default()
        },
    )
}

fn containers() -> impl Strategy<Value = Vec<Container>> {
    let container =
        (name(), of(".{0,10}"), of(Just("Always".to_owned()))).prop_map(|(name, image, restart_policy)| {
            Container { name, image, restart_policy, ..Container::default() }
        });
    prop::collection::vec(container, 0..3)
}

fn condition() -> impl Strategy<Value = PodCondition> {
    let kind = select(vec!["Ready", "PodScheduled", "DisruptionTarget", "Initialized"]);
    (kind, select(vec!["True", "False", "Unknown", ""]), of(word())).prop_map(|(kind, status, reason)| {
        PodCondition { type_: kind.to_owned(), status: status.to_owned(), reason, ..PodCondition::default() }
    })
}

fn pod_status() -> impl Strategy<Value = PodStatus> {
    let phase =
        of(select(vec!["Pending", "Running", "Succeeded", "Failed", "Unknown", "?"]).prop_map(str::to_owned));
    let statuses = || of(prop::collection::vec(status(), 0..3));
    (phase, of(word()), of(prop::collection::vec(condition(), 0..3)), statuses(), statuses(), time())
        .prop_map(|(phase, reason, conditions, init_container_statuses, container_statuses, start_time)| {
            PodStatus {
                phase,
                reason,
                conditions,
                init_container_statuses,
                container_statuses,
                start_time,
                ..PodStatus::default()
            }
        })
}

fn pod() -> impl Strategy<Value = Pod> {
    let spec = (
        of(select(vec!["", "node-1"]).prop_map(str::to_owned)),
        containers(),
        of(containers()),
        of(select(vec!["Never", "OnFailure"])),
    )
        .prop_map(|(node_name, containers, init_containers, restart_policy)| PodSpec {
            node_name,
            containers,
            init_containers,
            restart_policy: restart_policy.map(str::to_owned),
            ..PodSpec::default()
        });
    (of(spec), of(pod_status()), time(), of(time())).prop_map(
        |(spec, status, creation_timestamp, deleted)| Pod {
            metadata: ObjectMeta {
                creation_timestamp,
                deletion_timestamp: deleted.flatten(),
                ..ObjectMeta::default()
            },
            spec,
            status,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    let path =
        select(vec!["", "spec.containers{notebook}", "spec.initContainers{init}", "spec.containers{", "}{"]);
    let kind = of(select(vec!["Pod", "PersistentVolumeClaim", "Node"]).prop_map(str::to_owned));
    (of(word()), of(".{0,30}"), kind, of(path), of(any::<i32>()), time(), time()).prop_map(
        |(reason, message, kind, path, count, first_timestamp, last_timestamp)| Event {
            reason,
            message,
            count,
            first_timestamp,
            last_timestamp,
            involved_object: ObjectReference {
                kind,
                field_path: path.map(str::to_owned),
                ..ObjectReference::default()
            },
            ..Event::default()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_analysis_of_every_pod_is_consistent(pod in pod(), events in prop::collection::vec(event(), 0..6)) {
        let policy = StagePolicy::default();
        let analysis = analyze(Some(&ObservedPod::from(&pod)), &events, &policy, NOW);
        prop_assert!(!analysis.reason.is_empty());
        prop_assert!(analysis.message.ends_with('.'), "{}", analysis.message);
        prop_assert!(analysis.recheck_at.is_none_or(|at| at > NOW));
        prop_assert!(analysis.findings.iter().all(|finding| finding.count > 0 && !finding.message.is_empty()));
        let critical = analysis.findings.iter().any(|finding| finding.severity == Severity::Critical);
        let goes_on = matches!(
            analysis.stage,
            Stage::Scheduling | Stage::Pulling | Stage::Initializing | Stage::Starting | Stage::Running
        );
        prop_assert!(!(critical && goes_on), "{analysis:#?}");
        prop_assert_eq!(pod.metadata.deletion_timestamp.is_some(), analysis.stage == Stage::Terminating);
        // The analysis is deterministic, and the order of events does not affect the stage.
        let mut reversed = events.clone();
        reversed.reverse();
        prop_assert_eq!(analyze(Some(&ObservedPod::from(&pod)), &events, &policy, NOW), analysis.clone());
        prop_assert_eq!(analyze(Some(&ObservedPod::from(&pod)), &reversed, &policy, NOW).stage, analysis.stage);
    }

    #[test]
    fn rechecks_move_forward_and_come_to_an_end(
        pod in pod(), events in prop::collection::vec(event(), 0..6),
    ) {
        let policy = StagePolicy::default();
        let mut now = NOW;
        for _ in 0..20 {
            let Some(next) = analyze(Some(&ObservedPod::from(&pod)), &events, &policy, now).recheck_at else { return Ok(()) };
            prop_assert!(next > now);
            now = next;
        }
        prop_assert!(false, "20 rechecks without an end");
    }

    #[test]
    fn equal_events_give_one_finding_with_a_count(event in event(), times in 1..30_usize, pod in pod()) {
        let analysis = analyze(Some(&ObservedPod::from(&pod)), &vec![event; times], &StagePolicy::default(), NOW);
        prop_assert!(analysis.findings.len() <= 1 + 6, "{analysis:#?}");
    }
}

//! The host's resources that a policy can take: memories, tables, handles, and the time of its start.

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;

use super::component_text::ComponentText;
use super::*;

/// The name of the user for the trial of hooks when a policy is loaded.
const TRIAL_USER: &str = "policy-trial";

/// An endless loop for all users whose names have a different length than that of the trial.
const LOOPS_FOR_USERS: &str = "(if (i32.ne (i32.load offset=4 (local.get 0)) (i32.const 12))
    (then (loop $forever (br $forever))))";

async fn limits_of(policies: &Policies) -> Result<Option<u32>, CallError> {
    let answers = policies.limits(&User::default(), Usage::default(), &Subject::default()).await?;
    Ok(answers.last().unwrap().value.labs)
}

async fn kind_at_load(text: ComponentText<'_>) -> LoadErrorKind {
    let (spec, _folder) = text.spec("evil");
    refused(spec).await
}

#[tokio::test]
async fn a_component_written_as_text_is_a_policy() {
    let (spec, _folder) =
        ComponentText { limits: "(local.set $n (i32.const 7))", ..ComponentText::default() }.spec("good");
    let policies = load(vec![spec]).await;
    assert_eq!(policies.loaded()[0].hooks, ["quota"]);
    assert_eq!(limits_of(&policies).await.unwrap(), Some(7));
}

#[tokio::test]
async fn what_happens_when_a_component_starts_counts_as_a_part_of_the_call() {
    let start = |core| kind_at_load(ComponentText { core, ..ComponentText::default() });
    let endless = "(func $start (loop (br 0))) (start $start)";
    let (spec, _folder) = ComponentText { core: endless, ..ComponentText::default() }.spec("evil");
    let kind = refused(within(SHORT, spec)).await;
    assert!(matches!(kind, LoadErrorKind::Trial(CallErrorKind::Deadline(SHORT))), "{kind}");
    let kind = start("(func $start unreachable) (start $start)").await;
    assert!(matches!(kind, LoadErrorKind::Trial(CallErrorKind::Trap(_))), "{kind}");
    let kind = start("(func $start (call $start)) (start $start)").await;
    assert!(matches!(kind, LoadErrorKind::Trial(CallErrorKind::Trap(_))), "{kind}");
    let kind = start("(func $start (drop (memory.grow (i32.const 2048)))) (start $start)").await;
    assert!(matches!(kind, LoadErrorKind::Trial(CallErrorKind::Memory { .. })), "{kind}");
}

/// A table of the engine's pool holds 20,000 elements.
#[tokio::test]
async fn a_table_cannot_grow_without_end() {
    let grows = ComponentText {
        core: "(table $table 0 funcref)",
        limits: "(loop $more
            (br_if $more (i32.ne (table.grow $table (ref.null func) (i32.const 1000)) (i32.const -1))))
            (local.set $n (table.size $table))",
        ..ComponentText::default()
    };
    let (spec, _folder) = grows.spec("evil");
    let elements = limits_of(&load(vec![spec]).await).await.unwrap().unwrap();
    assert!((10_000..=100_000).contains(&elements), "{elements} elements");
}

/// A core module, and as many instances of it. A module may have one memory and one table.
fn instances(module: &str, count: usize) -> String {
    format!("(core module $part {module})") + &"(core instance (instantiate $part))".repeat(count)
}

#[tokio::test]
async fn tables_count_as_memory() {
    let tables = instances("(table 20000 funcref)", 60);
    let (mut spec, _folder) = ComponentText { before: &tables, ..ComponentText::default() }.spec("evil");
    spec.limits.memory_bytes = 4 << 20;
    let kind = refused(spec).await;
    let LoadErrorKind::Trial(CallErrorKind::Memory { asked, limit }) = kind else { panic!("{kind}") };
    assert!(asked > limit && limit == 4 << 20, "{asked} of {limit}");
}

#[tokio::test]
async fn a_component_with_more_parts_than_a_call_may_have_is_refused() {
    for (parts, what) in [
        (instances("", 64), "core module instances"),
        (instances("(memory 1)", 8), "memories"),
        (instances("(memory 0) (memory 0)", 1), "memories"),
        (instances("(table 1 funcref) (table 1 funcref)", 1), "tables"),
        (instances("(table 100000 funcref)", 1), "table"),
        (instances("(memory 4096)", 1), "memory"),
    ] {
        let kind = kind_at_load(ComponentText { before: &parts, ..ComponentText::default() }).await;
        assert!(matches!(&kind, LoadErrorKind::Compile(why) if why.contains(what)), "{what}: {kind}");
    }
}

/// Each call has room for all parts that a component may have, whatever other calls take.
#[tokio::test]
async fn calls_with_many_parts_leave_room_for_others() {
    let parts = instances("(table 1 funcref)", 55) + &instances("(memory 0)", 6).replace("$part", "$other");
    let crowded = ComponentText { before: &parts, limits: LOOPS_FOR_USERS, ..ComponentText::default() };
    let (crowded, _folder) = crowded.spec("crowded");
    let (good, _other_folder) = ComponentText::default().spec("good");
    // A policy takes at most half of the slots.
    let options = EngineOptions { slots: 8, ..options() };
    let policies = Policies::load(vec![within(SHORT, crowded), good], options).await.unwrap();
    let looping = User { name: "somebody".into(), ..User::default() };
    let (usage, subject) = (Usage::default(), Subject::default());
    let loops = || failed(|| policies.limits(&looping, usage, &subject));
    let spared = User { name: TRIAL_USER.into(), ..User::default() };
    let ends = with_cpu(|| policies.limits(&spared, usage, &subject));
    let (one, two, three, answers) = tokio::join!(loops(), loops(), loops(), ends);
    assert_eq!(answers.unwrap().len(), 2);
    for error in [one, two, three] {
        assert!(matches!(error.kind, CallErrorKind::Deadline(_)), "{error}");
        assert_eq!(error.policy.as_str(), "crowded");
    }
}

/// All calls share the memory that the service has for them, and a policy gets half of it.
#[tokio::test]
async fn calls_that_take_all_memory_fail_and_leave_room_for_others() {
    let takes_much = LOOPS_FOR_USERS.replace("(loop", "(drop (memory.grow (i32.const 1600))) (loop");
    let greedy = ComponentText { limits: &takes_much, ..ComponentText::default() };
    let (greedy, _folder) = greedy.spec("greedy");
    let (good, _other_folder) = ComponentText::default().spec("good");
    let options = EngineOptions { memory: 256 << 20, ..options() };
    let policies = Policies::load(vec![within(1000, greedy), good], options).await.unwrap();
    let somebody = User { name: "somebody".into(), ..User::default() };
    let (usage, subject) = (Usage::default(), Subject::default());
    let mut calls: FuturesUnordered<_> =
        (0..4).map(|_| policies.limits(&somebody, usage, &subject)).collect();
    for _ in 0..3 {
        let error = calls.next().await.unwrap().unwrap_err();
        assert!(matches!(error.kind, CallErrorKind::NoMemory), "one of them has all of it: {error}");
        assert_eq!((error.policy.as_str(), error.kind.name()), ("greedy", "overloaded"));
    }
    let spared = User { name: TRIAL_USER.into(), ..User::default() };
    let answers = with_cpu(|| policies.limits(&spared, usage, &subject)).await.unwrap();
    assert_eq!(answers.len(), 2);
}

#[tokio::test]
async fn handles_of_the_host_are_limited() {
    let floods = ComponentText {
        before: r#"
            (import "wasi:io/poll@0.2.0" (instance $poll (export "pollable" (type (sub resource)))))
            (alias export $poll "pollable" (type $pollable))
            (import "wasi:clocks/monotonic-clock@0.2.0" (instance $clock
              (alias outer 1 $pollable (type $of-poll))
              (export "pollable" (type $pollable (eq $of-poll)))
              (export "subscribe-duration" (func (param "when" u64) (result (own $pollable))))))
            (alias export $clock "subscribe-duration" (func $subscribe))
            (core func $subscribe (canon lower (func $subscribe)))"#,
        core_imports: r#"(import "clock" "subscribe" (func $subscribe (param i64) (result i32)))"#,
        arguments: r#"(with "clock" (instance (export "subscribe" (func $subscribe))))"#,
        limits: "(loop $more (drop (call $subscribe (i64.const 1000))) (br $more))",
        ..ComponentText::default()
    };
    let (spec, _folder) = floods.spec("evil");
    let kind = refused(within(AMPLE, spec)).await;
    assert!(matches!(kind, LoadErrorKind::Trial(CallErrorKind::Trap(_))), "{kind}");
}

#[tokio::test]
async fn handles_of_the_policy_itself_are_limited() {
    let floods = ComponentText {
        before: "(type $thing (resource (rep i32))) (core func $new (canon resource.new (type $thing)))",
        core_imports: r#"(import "thing" "new" (func $new (param i32) (result i32)))"#,
        arguments: r#"(with "thing" (instance (export "new" (func $new))))"#,
        limits: "(loop $more (drop (call $new (i32.const 1))) (br $more))",
        ..ComponentText::default()
    };
    let (spec, _folder) = floods.spec("evil");
    let kind = refused(within(AMPLE, spec)).await;
    assert!(matches!(kind, LoadErrorKind::Trial(CallErrorKind::Trap(_))), "{kind}");
}

/// The speed of one policy must not affect another.
#[tokio::test]
async fn slow_calls_of_a_policy_leave_slots_for_others() {
    let options = EngineOptions { slots: 4, slot_wait: Duration::from_millis(20), ..options() };
    let (good, _folder) = ComponentText::default().spec("good");
    let mut sleeps = hostile("sleep");
    sleeps.limits.deadline_ms = 1000;
    let policies = Policies::load(vec![sleeps, good], options).await.unwrap();
    let request = LabRequest::default();
    let mut slow: FuturesUnordered<_> = (0..8).map(|_| policies.customize(&request)).collect();
    for _ in 0..6 {
        assert_eq!(slow.next().await.unwrap().unwrap_err().kind.name(), "overloaded");
    }
    assert_eq!(limits_of(&policies).await.unwrap(), Some(0), "while two calls sleep");
}

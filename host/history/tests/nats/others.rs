//! What other versions, other installations and other programs have written.

use async_nats::jetstream::stream::Config;
use wasmspawner_core::lifecycle::Outcome;
use wasmspawner_core::policy::usage::Run;
use wasmspawner_history::History;

use crate::server::{NatsServer, SKIPPED};
use crate::setup::{Process, Reader, at, begin, job, known, lab, note, own_address, server, until};

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_cannot_be_read_stay_as_they_are_and_hinder_nothing() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let first = Process::start(&server.url());
    first.lead(1).await;
    note(&begin(&first.history, "ada", 1), 1);
    first.flush().await;
    let reader = Reader::open(&server.url()).await;
    let (mut later, _) = reader.job(1).await.unwrap();
    let put = async |key: &str, value: String| {
        let sent = reader.0.publish(format!("$KV.wasmspawner-jobs.{key}"), value.into()).await.unwrap();
        sent.await.unwrap();
    };
    later["job_id"] = job(2).to_string().into();
    later["kind"] = "hibernate".into();
    put(&format!("job.{}", job(2)), later.to_string()).await;
    later["kind"] = "spawn".into();
    later["events"]
        .as_array_mut()
        .unwrap()
        .push(serde_json::json!({ "number": 2, "at": "2026-01-01T00:00:00Z", "type": "mood", "data": 1 }));
    // The content is about another operation than the key.
    put(&format!("job.{}", job(3)), later.to_string()).await;
    later["job_id"] = job(4).to_string().into();
    put(&format!("job.{}", job(4)), later.to_string()).await;
    put(&format!("job.{}", job(5)), "{".to_owned()).await;
    put("job.x.y", "1".to_owned()).await;
    put("theirs", "1".to_owned()).await;

    let second = Process::start(&server.url());
    second.lead(2).await;
    assert_eq!(
        (second.history.len(), known(&second.history, 4)),
        (2, vec![1]),
        "a word costs its event only"
    );
    note(&begin(&second.history, "eve", 6), 1);
    second.flush().await;
    assert_eq!(reader.job(2).await.unwrap().0["kind"], "hibernate");
    assert!(reader.job(6).await.is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn the_buckets_of_another_installation_are_left_alone() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let ours = Process::start(&server.url());
    ours.lead(1).await;
    note(&begin(&ours.history, "ada", 1), 1);
    ours.flush().await;
    let theirs = Process::of("another", crate::setup::config(&server.url(), ""));
    theirs.begin_to_lead(9);
    begin(&theirs.history, "eve", 2);
    let known = tokio::time::timeout(std::time::Duration::from_secs(2), theirs.history.complete()).await;
    assert!(known.is_err() && theirs.history.is_failing() && theirs.history.job(job(1)).is_none());
    let reader = Reader::open(&server.url()).await;
    assert_eq!(reader.job(2).await, None);
    let names = ", \"jobs_bucket\": \"a\", \"usage_bucket\": \"b\", \"stream\": \"c\"";
    let theirs = Process::of("another", crate::setup::config(&server.url(), names));
    theirs.lead(1).await;
}

/// Who may not make streams gets those that an administrator has made, with their own limits.
#[tokio::test(flavor = "multi_thread")]
async fn a_bucket_that_somebody_has_made_is_used_as_it_is() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let reader = Reader::open(&server.url()).await;
    let made = Config {
        name: "KV_wasmspawner-jobs".into(),
        subjects: vec!["$KV.wasmspawner-jobs.>".into()],
        max_messages_per_subject: 1,
        max_age: std::time::Duration::from_hours(1),
        ..Config::default()
    };
    reader.0.create_stream(made).await.unwrap();
    let process = Process::start(&server.url());
    process.lead(1).await;
    note(&begin(&process.history, "ada", 1), 1);
    process.flush().await;
    let mut stream = reader.0.get_stream("KV_wasmspawner-jobs").await.unwrap();
    assert_eq!(stream.info().await.unwrap().config.max_age, std::time::Duration::from_hours(1));
    // Somebody deletes it.
    reader.0.delete_stream("KV_wasmspawner-jobs").await.unwrap();
    note(&begin(&process.history, "eve", 2), 1);
    until(|| process.history.is_failing()).await;
    process.flush().await;
    let made = reader.0.get_stream("KV_wasmspawner-jobs").await.unwrap();
    assert_eq!(made.cached_info().config.max_age, std::time::Duration::from_hours(48));
    assert!(reader.job(2).await.is_some());
}

/// A run that began two hours ago and has ended is counted once, also when a bucket is made anew and read again.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_has_ended_does_not_come_back() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let user = lab("ada").lab.user;
    let run = || Run { key: lab("ada"), since: at(-7200), cpu_millis: 0, memory_bytes: 1, dask_workers: 0 };
    let first = Process::start(&server.url());
    first.lead(1).await;
    first.history.run_began(run());
    first.flush().await;
    drop(first);

    // The run ends before the process knows that it was counted.
    let second = Process::start(&server.url());
    second.may_write.store(false, std::sync::atomic::Ordering::Relaxed);
    second.history.lead(2);
    second.history.run_ended(&lab("ada"), at(0));
    second.lead(2).await;
    let hours = |history: &History| history.days_of(&user).total(2, at(3600)).lab_seconds / 3600;
    assert_eq!((second.history.days_of(&user).running().len(), hours(&second.history)), (0, 2));
    second.flush().await;

    let reader = Reader::open(&server.url()).await;
    let mut stale = serde_json::to_value(second.history.days_of(&user)).unwrap();
    stale["running"] = serde_json::json!([run()]);
    let stale = || stale.to_string();
    for deleted in ["KV_wasmspawner-jobs", "KV_wasmspawner-usage"] {
        let sent = reader.0.publish("$KV.wasmspawner-usage.user.ada", stale().into()).await.unwrap();
        sent.await.unwrap();
        reader.0.delete_stream(deleted).await.unwrap();
        note(&begin(&second.history, "eve", 2), 1);
        second.history.run_began(Run { key: lab("eve"), ..run() });
        second.history.run_ended(&lab("eve"), at(0));
        until(|| second.history.is_failing()).await;
        second.flush().await;
        assert_eq!((second.history.days_of(&user).running().len(), hours(&second.history)), (0, 2));
        let (stored, _) = reader.value("wasmspawner-usage", "user.ada").await.unwrap();
        assert_eq!(stored["running"], serde_json::json!([]), "{deleted}: {stored:#}");
    }
}

/// An administrator has sealed the stream of events, which takes nothing any more.
#[tokio::test(flavor = "multi_thread")]
async fn what_nats_always_refuses_stops_nothing_else() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let process = Process::start(&server.url());
    process.lead(1).await;
    let reader = Reader::open(&server.url()).await;
    let mut events = reader.0.get_stream("WASMSPAWNER_EVENTS").await.unwrap();
    let config = events.info().await.unwrap().config.clone();
    reader.0.update_stream(Config { sealed: true, ..config }).await.unwrap();
    let entry = begin(&process.history, "ada", 1);
    (1..100).for_each(|number| note(&entry, number));
    entry.end(Outcome::Complete, at(1));
    until(|| process.history.dropped() == 101).await;
    process.flush().await;
    assert_eq!(reader.job(1).await.unwrap().0["outcome"], "complete");
    assert_eq!(known(&process.history, 1).len(), 99, "it is in memory");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_record_that_is_too_large_is_stored_without_its_events() {
    let Some(server) = NatsServer::start(own_address(), "max_payload: 8KB") else {
        return println!("{SKIPPED}");
    };
    let process = Process::start(&server.url());
    process.lead(1).await;
    let entry = begin(&process.history, "ada", 1);
    (1..200).for_each(|number| note(&entry, number));
    entry.end(Outcome::Complete, at(1));
    process.flush().await;
    let (value, _) = Reader::open(&server.url()).await.job(1).await.unwrap();
    assert_eq!((&value["outcome"], &value["events"]), (&"complete".into(), &serde_json::json!([])));
    assert_eq!(process.history.dropped(), 0);
    let next = Process::start(&server.url());
    next.lead(2).await;
    assert!(next.history.job(job(1)).unwrap().ended_at.is_some());
}

//! Several processes and other programs read what one writes.

use wasmspawner_core::lifecycle::Outcome;
use wasmspawner_core::lifecycle::stage::{Finding, Severity, Stage};
use wasmspawner_core::policy::usage::Run;
use wasmspawner_history::read_job;

use crate::server::SKIPPED;
use crate::setup::{Process, Reader, at, begin, config, enter, job, known, lab, note, server, until};

#[tokio::test(flavor = "multi_thread")]
async fn others_read_what_the_leader_writes_when_it_happens() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let (leader, other) = (Process::start(&server.url()), Process::start(&server.url()));
    leader.lead(1).await;
    until(|| other.history.is_shared()).await;
    let entry = begin(&leader.history, "ada@x", 1);
    enter(&entry, 1, Stage::Scheduling);
    until(|| known(&other.history, 1) == [1]).await;
    let finding = Finding {
        severity: Severity::Warning,
        reason: "FailedMount".into(),
        message: "late".into(),
        count: 1,
        source: "pod".into(),
    };
    entry.note_findings(&[finding], at(0));
    until(|| other.history.job(job(1)).is_some_and(|record| record.cluster_events.len() == 1)).await;
    entry.end(Outcome::Complete, at(1));
    until(|| other.history.last(&lab("ada@x")).is_some_and(|record| record.ended_at.is_some())).await;
    leader.flush().await;

    let reader = Reader::open(&server.url()).await;
    let (value, writer) = reader.job(1).await.unwrap();
    assert_eq!((&value["outcome"], writer.as_str()), (&"complete".into(), "1"), "{value:#}");
    let (of_lab, _) = reader.value("wasmspawner-jobs", "lab.ada=40x").await.unwrap();
    assert_eq!(of_lab["job_id"], job(1).to_string());
    let types: Vec<_> = reader.events().await.iter().map(|event| event["type"].clone()).collect();
    assert_eq!(types, ["begun", "stage", "cluster", "ended"]);
    let read = read_job(config(&server.url(), ""), job(1)).await.unwrap().unwrap();
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&read).unwrap(), value);
    assert_eq!(read_job(config(&server.url(), ""), job(9)).await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_leader_continues_what_the_one_before_has_written() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let first = Process::start(&server.url());
    first.lead(1).await;
    let entry = begin(&first.history, "ada", 1);
    (1..=3).for_each(|number| note(&entry, number));
    first.history.run_began(Run {
        key: lab("ada"),
        since: at(-7200),
        cpu_millis: 1000,
        memory_bytes: 1,
        dask_workers: 0,
    });
    first.flush().await;
    drop((first, entry));

    let second = Process::start(&server.url());
    second.lead(2).await;
    assert_eq!(known(&second.history, 1), [1, 2, 3]);
    let entry = begin(&second.history, "ada", 1);
    note(&entry, 9000);
    entry.end(Outcome::Complete, at(1));
    let user = lab("ada").lab.user;
    assert!(second.history.days_of(&user).total(2, at(0)).lab_seconds >= 7200);
    second.history.close_runs(|_| false);
    assert!(second.history.days_of(&user).running().is_empty());
    second.flush().await;
    let (value, writer) = Reader::open(&server.url()).await.job(1).await.unwrap();
    assert_eq!((value["events"].as_array().unwrap().len(), writer.as_str()), (4, "2"), "{value:#}");
}

/// The first process was cut off from the cluster, or stopped for a minute, and does not know that it leads no more.
#[tokio::test(flavor = "multi_thread")]
async fn a_process_that_led_before_replaces_nothing_of_a_later_leader() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let (first, second) = (Process::start(&server.url()), Process::start(&server.url()));
    first.lead(1).await;
    let stale = begin(&first.history, "ada", 1);
    note(&stale, 1);
    first.flush().await;
    second.lead(2).await;
    let entry = begin(&second.history, "ada", 1);
    note(&entry, 2);
    entry.end(Outcome::Complete, at(1));
    second.flush().await;

    note(&stale, 3);
    first.flush().await;
    let reader = Reader::open(&server.url()).await;
    let (value, writer) = reader.job(1).await.unwrap();
    assert_eq!((&value["outcome"], writer.as_str()), (&"complete".into(), "2"), "{value:#}");
    // It may write no more once its time is over, not even what nobody else has written.
    first.may_write.store(false, std::sync::atomic::Ordering::Relaxed);
    begin(&first.history, "eve", 2);
    note(&entry, 4);
    second.flush().await;
    assert_eq!(reader.job(2).await, None);
    // What it has written before it lost its time is replaced by the later leader.
    assert_eq!(known(&second.history, 1), [1, 2, 4]);
}

//! NATS is away, slow or full.

use std::time::{Duration, Instant};

use async_nats::jetstream::stream::Config;
use tokio::net::TcpListener;
use wasmspawner_core::lifecycle::Outcome;

use crate::server::{NatsServer, SKIPPED};
use crate::setup::{Process, Reader, at, begin, config, known, note, own_address, server, until};

/// Writes operations with ten events each. Nothing waits for that.
fn write(process: &Process, operations: std::ops::Range<u128>) {
    let begun = Instant::now();
    for number in operations {
        let entry = begin(&process.history, &format!("user{number}"), number);
        (1..=10).for_each(|number| note(&entry, number));
        entry.end(Outcome::Complete, at(0));
    }
    assert!(begun.elapsed() < Duration::from_secs(5), "a writer waits");
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_lost_while_nats_is_away() {
    let Some(mut server) = server() else { return println!("{SKIPPED}") };
    let process = Process::start(&server.url());
    process.lead(1).await;
    write(&process, 0..50);
    server.kill();
    write(&process, 50..100);
    until(|| process.history.is_failing()).await;
    write(&process, 100..150);
    server.run();
    process.flush().await;
    let next = Process::start(&server.url());
    next.lead(2).await;
    for number in 0..150 {
        assert_eq!(known(&next.history, number).len(), 10, "operation {number}");
        assert!(next.history.job(crate::setup::job(number)).unwrap().ended_at.is_some());
    }
    // Ten events of each, with its beginning and its end. One whose answer was lost is not there twice.
    assert_eq!(Reader::open(&server.url()).await.events().await.len(), 150 * 12);
    assert_eq!(process.history.dropped(), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nats_that_stands_still_delays_nothing_and_loses_nothing() {
    let Some(server) = server() else { return println!("{SKIPPED}") };
    let process = Process::start(&server.url());
    process.lead(1).await;
    server.freeze();
    write(&process, 0..50);
    until(|| process.history.is_failing()).await;
    write(&process, 50..60);
    server.thaw();
    process.flush().await;
    let reader = Reader::open(&server.url()).await;
    for number in 0..60 {
        assert_eq!(reader.job(number).await.unwrap().0["outcome"], "complete", "operation {number}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_nats_that_accepts_and_never_answers_is_given_up() {
    let listener = TcpListener::bind((own_address(), 4222)).await.unwrap();
    let url = format!("nats://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((connection, _)) = listener.accept().await {
            open.push(connection);
        }
    });
    let process = Process::start(&url);
    process.begin_to_lead(1);
    assert!(process.history.is_failing());
    write(&process, 0..200);
    assert_eq!(known(&process.history, 7).len(), 10, "it is in memory");
    let begun = Instant::now();
    let history = process.history.clone();
    tokio::task::spawn_blocking(move || history.flush(at(0))).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(4), "the end of the service does not wait");
    assert!(tokio::time::timeout(Duration::from_millis(10), process.history.complete()).await.is_err());
}

#[tokio::test(flavor = "multi_thread")]
async fn beyond_the_queue_the_oldest_changes_are_dropped_and_counted() {
    let Some(mut server) = server() else { return println!("{SKIPPED}") };
    let process = Process::of("hub", config(&server.url(), ", \"queue\": 30"));
    process.lead(1).await;
    process.flush().await;
    server.kill();
    until(|| {
        begin(&process.history, "ada", 1);
        process.history.is_failing()
    })
    .await;
    write(&process, 10..20);
    // Each has twelve events, its state and that of its lab.
    assert!(process.history.dropped() >= 10 * 14 - 30, "{}", process.history.dropped());
    server.run();
    process.flush().await;
    let reader = Reader::open(&server.url()).await;
    assert!(reader.job(19).await.is_some(), "the newest is there");
    assert_eq!(reader.job(10).await, None, "the oldest is not");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_store_delays_the_history_and_loses_nothing() {
    let limit = "jetstream { STORE, max_file_store: 2MB }";
    let Some(server) = NatsServer::start(own_address(), limit) else { return println!("{SKIPPED}") };
    let process = Process::start(&server.url());
    process.lead(1).await;
    process.flush().await;
    let reader = Reader::open(&server.url()).await;
    let filler = Config { name: "filler".into(), subjects: vec!["filler".into()], ..Config::default() };
    reader.0.create_stream(filler).await.unwrap();
    let full = async || {
        let sent = reader.0.publish("filler", vec![1; 64 * 1024].into()).await.unwrap();
        sent.await.is_err()
    };
    let mut pieces = 0;
    while !full().await {
        pieces += 1;
        assert!(pieces < 100, "the store is not full");
    }
    let mut last = 0;
    while !process.history.is_failing() {
        write(&process, last..last + 10);
        last += 10;
        assert!(last < 10_000, "the history is written to a full store");
        tokio::task::yield_now().await;
    }
    reader.0.delete_stream("filler").await.unwrap();
    process.flush().await;
    for number in 0..last {
        assert_eq!(
            reader.job(number).await.unwrap().0["outcome"],
            "complete",
            "operation {number} of {last}"
        );
    }
    assert_eq!(process.history.dropped(), 0);
}

//! `GET /labs/{username}/events`

use wasmspawner_tests::events::Event;
use wasmspawner_tests::service::Service;

use crate::BINARY;

/// A transcript without the values that differ between runs: the operation's id, numbers, times.
fn normalised(transcript: &str) -> String {
    let lines =
        transcript.lines().map(|line| match (line.split_once("id: "), line.split_once(r#""at":""#)) {
            (Some(("", _)), _) => "id: <job>-<n>".to_owned(),
            _ if line.starts_with("url: http://") => "url: <url>".to_owned(),
            (_, Some((before, after))) => {
                let rest = after.split_once('"').map_or("", |(_, rest)| rest);
                format!(r#"{before}"at":"<time>"{rest}"#)
            }
            _ => line.to_owned(),
        });
    lines.collect::<Vec<_>>().join("\n")
}

/// A normalised transcript in an order that is the same in every run. Events about a pod (`info`) and states of the pod
/// (`stage`) come from two watches, so their order varies, and a stage may be reported several times. Messages are
/// therefore sorted and put at the end, and each stage is listed once.
fn settled(transcript: &str) -> String {
    let normalised = normalised(transcript);
    let (mut messages, others): (Vec<&str>, Vec<&str>) =
        normalised.split("\n\n").partition(|frame| frame.contains("event: info"));
    messages.sort_unstable();
    messages.dedup();
    let mut frames: Vec<&str> = Vec::new();
    for frame in others {
        let stage = |frame: &str| {
            frame.split_once(r#"{"stage":""#).map(|(_, rest)| rest.split('"').next().map(str::to_owned))
        };
        if stage(frame).is_none() || frames.iter().all(|earlier| stage(earlier) != stage(frame)) {
            frames.push(frame);
        }
    }
    format!("{}\n\n{}", frames.join("\n\n").trim(), messages.join("\n\n"))
}

/// Checks that the ids of an operation count from 1 without gaps.
fn assert_numbered(events: &[Event]) {
    let numbers = events.iter().map(|event| event.id.rsplit_once('-').unwrap().1.parse::<usize>().unwrap());
    assert!(numbers.eq(1..=events.len()), "{events:#?}");
}

/// Makes the stages so long that each is observed.
fn visible_stages(config: &mut serde_json::Value) {
    config["embedded"]["simulated"] =
        serde_json::json!({ "schedule": "2s", "pull": "2s", "ready": "2s", "stop": "200ms" });
}

fn progress(events: &[Event]) -> Vec<u8> {
    events.iter().filter(|event| event.kind == "progress").map(|event| event.data.parse().unwrap()).collect()
}

#[tokio::test]
async fn the_whole_stream_of_a_spawn_and_of_a_stop() {
    let service = Service::start_with(BINARY, visible_stages).await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    let mut spawn = ada.events("ada").await.unwrap();
    assert_eq!(spawn.headers()["content-type"], "text/event-stream");
    assert_eq!(spawn.headers()["cache-control"], "no-store");
    assert_eq!(spawn.headers()["x-accel-buffering"], "no");
    let events = spawn.to_end().await.unwrap();
    assert!(progress(&events).is_sorted(), "{events:#?}");
    assert_numbered(&events);
    insta::assert_snapshot!("spawn", settled(spawn.transcript()));

    let mut replay = ada.events("ada").await.unwrap();
    assert_eq!(replay.to_end().await.unwrap(), events, "a finished operation is replayed whole");

    assert_eq!(ada.stop("ada").await.unwrap().status, 202);
    let mut stop = ada.events("ada").await.unwrap();
    assert_numbered(&stop.to_end().await.unwrap());
    insta::assert_snapshot!("stop", normalised(stop.transcript()));
}

#[tokio::test]
async fn a_failure_s_stream_ends_with_its_reason() {
    let service = Service::start(BINARY).await.unwrap();
    let user = service.user("fault.pull-failure").unwrap();
    assert_eq!(user.spawn("fault.pull-failure").await.unwrap().status, 303);
    let mut events = user.events("fault.pull-failure").await.unwrap();
    let read = events.to_end().await.unwrap();
    assert_eq!(read.last().unwrap().kind, "failed");
    assert!(read.iter().any(|event| event.kind == "error"), "{read:#?}");
}

#[tokio::test]
async fn reading_continues_after_the_last_event_id() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    let all = ada.spawn_to_end("ada").await.unwrap();
    for seen in 0..all.len() {
        let rest = ada.events_after("ada", Some(&all[seen].id)).await.unwrap().to_end().await.unwrap();
        assert_eq!(rest, all[seen + 1..], "after {}", all[seen].id);
    }
    for foreign in ["", "nonsense", "01890a5d-ac96-774b-bcce-b302099a8057-3", "ü"] {
        let whole = ada.events_after("ada", Some(foreign)).await.unwrap().to_end().await.unwrap();
        assert_eq!(whole, all, "after {foreign:?}");
    }
    let path = format!("/spawner/v1/labs/ada/events?last_event_id={}", all[0].id);
    let by_query = ada.get(&path).await.unwrap();
    assert!(by_query.body.contains(&all[1].id) && !by_query.body.contains(&format!("id: {}\n", all[0].id)));
}

#[tokio::test]
async fn a_broken_connection_loses_no_event() {
    let service = Service::start_with(BINARY, visible_stages).await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    let mut read: Vec<Event> = Vec::new();
    while read.last().is_none_or(|event| event.kind != "complete") {
        let last = read.last().map(|event| event.id.clone());
        let mut connection = ada.events_after("ada", last.as_deref()).await.unwrap();
        read.push(connection.next().await.unwrap().unwrap());
    }
    assert_eq!(read, ada.events("ada").await.unwrap().to_end().await.unwrap());
}

#[tokio::test]
async fn streams_of_a_replaced_operation_get_its_end_and_are_closed() {
    let service = Service::start(BINARY).await.unwrap();
    let name = "fault.not-ready";
    let user = service.user(name).unwrap();
    assert_eq!(user.spawn(name).await.unwrap().status, 303);
    let mut of_spawn = user.events(name).await.unwrap();
    let first = of_spawn.next().await.unwrap().unwrap();
    assert_eq!(user.stop(name).await.unwrap().status, 202);
    let rest = of_spawn.to_end().await.unwrap();
    assert!(["failed", "complete"].contains(&rest.last().unwrap().kind.as_str()), "{rest:#?}");
    let of_stop = user.events_after(name, Some(&first.id)).await.unwrap().to_end().await.unwrap();
    let job = |event: &Event| event.id[..36].to_owned();
    assert!(of_stop.iter().all(|event| job(event) != job(&first)), "{of_stop:#?}");
}

#[tokio::test]
async fn a_slow_reader_does_not_delay_others() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    assert_eq!(ada.spawn("ada").await.unwrap().status, 303);
    let (admin, mut sleepers) = (service.admin().unwrap(), Vec::new());
    for _ in 0..50 {
        sleepers.push(admin.events("ada").await.unwrap());
    }
    let awake = ada.events("ada").await.unwrap().to_end().await.unwrap();
    assert_eq!(awake.last().unwrap().kind, "complete");
    for sleeper in &mut sleepers {
        assert_eq!(sleeper.to_end().await.unwrap(), awake);
    }
}

#[tokio::test]
async fn an_idle_stream_is_kept_open() {
    let service = Service::start(BINARY).await.unwrap();
    let user = service.user("fault.not-ready").unwrap();
    assert_eq!(user.spawn("fault.not-ready").await.unwrap().status, 303);
    let mut events = user.events("fault.not-ready").await.unwrap();
    assert!(events.next().await.unwrap().is_some());
    assert!(events.transcript().starts_with("retry: 1000\n\n"), "{}", events.transcript());
    events.until("\n\n: still there\n\n").await.unwrap();
}

#[tokio::test]
async fn a_user_without_a_lab_gets_no_events() {
    let service = Service::start(BINARY).await.unwrap();
    let ada = service.user("ada").unwrap();
    let none = ada.get("/spawner/v1/labs/ada/events").await.unwrap();
    assert_eq!(none.problem().unwrap(), "404 unknown_lab");
    let other = ada.get("/spawner/v1/labs/bob/events").await.unwrap();
    assert_eq!(other.problem().unwrap(), "403 permission_denied");
}

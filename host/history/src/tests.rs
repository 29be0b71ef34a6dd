//! Tests of the history, on disk and in memory.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use wasmspawner_core::lifecycle::progress::{Entry, LoggedEntry};
use wasmspawner_core::lifecycle::{Operation, OperationKind};
use wasmspawner_core::names::Username;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::policy::usage::Run;

use super::*;

const KEEP: Retention = Retention { span: SignedDuration::from_hours(1), operations: 1000 };

fn at(seconds: i64) -> Timestamp {
    Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
}

fn lab(user: &str) -> SpawnKey {
    LabKey::default_server(Username::parse(user).unwrap()).into()
}

fn job(number: u128) -> JobId {
    JobId::new(uuid::Uuid::from_u128(number))
}

/// Begins operation `number` of a lab, at second `number`.
fn begin(history: &History, user: &str, number: u32) -> HistoryEntry {
    let started_at = at(number.into());
    let operation = Operation {
        job_id: job(number.into()),
        kind: OperationKind::Spawn,
        started_at,
        deadline: started_at,
    };
    history.begin(OperationRecord::begin(lab(user), &operation))
}

/// Begins an operation and ends it one second later.
fn begin_and_end(history: &History, user: &str, number: u32) -> HistoryEntry {
    let entry = begin(history, user, number);
    entry.end(Outcome::Complete, at(i64::from(number) + 1));
    entry
}

fn note_info(entry: &HistoryEntry, number: usize) {
    entry.note(&LoggedEntry { number, at: at(0), entry: Entry::Info(number.to_string()) });
}

fn numbers(history: &History, user: &str) -> Vec<u128> {
    history
        .operations(&lab(user))
        .iter()
        .map(|record| record.job_id.to_string().parse::<uuid::Uuid>().unwrap().as_u128())
        .collect()
}

/// Opens the file again, once the thread that writes it has closed it.
fn reopen(file: &Path, keep: Retention) -> History {
    let attempts = std::iter::from_fn(|| {
        std::thread::yield_now();
        Some(History::open(file, keep))
    });
    attempts.take(1_000_000).find_map(Result::ok).unwrap()
}

#[test]
fn a_history_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.redb");
    let history = History::open(&file, KEEP).unwrap();
    begin(&history, "ada", 1);
    note_info(&begin(&history, "ada", 2), 1);
    history.flush(at(9));
    drop(history);
    let reopened = reopen(&file, KEEP);
    assert_eq!(numbers(&reopened, "ada"), [2, 1]);
    assert_eq!(reopened.last(&lab("ada")).unwrap().events.len(), 1);
}

#[test]
fn a_history_that_cannot_be_read_is_moved_aside() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.redb");
    std::fs::write(&file, "this is no database, but it is long enough to be looked at as one").unwrap();
    let history = History::open(&file, KEEP).unwrap();
    begin(&history, "ada", 1);
    assert_eq!(numbers(&history, "ada"), [1]);
    let names: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(names.iter().any(|name| name.to_string_lossy().starts_with("history.broken-")), "{names:?}");
}

#[test]
fn operations_that_a_crash_left_open_are_closed() {
    let history = History::in_memory(KEEP);
    begin(&history, "ada", 1);
    begin(&history, "ada", 2);
    history.close_interrupted(at(9), |_, open| open == job(2));
    let open: Vec<bool> =
        history.operations(&lab("ada")).iter().map(|record| record.ended_at.is_none()).collect();
    assert_eq!((numbers(&history, "ada"), open), (vec![2, 1], vec![true, false]));
}

#[test]
fn old_operations_expire_but_not_those_under_way() {
    let history = History::in_memory(KEEP);
    begin(&history, "ada", 1);
    begin_and_end(&history, "ada", 2);
    begin_and_end(&history, "ada", 7300);
    history.expire(at(7500));
    assert_eq!(numbers(&history, "ada"), [7300, 1]);
    assert_eq!(history.len(), 2);
}

#[test]
fn above_the_bound_the_operations_that_ended_first_are_dropped() {
    let history = History::in_memory(Retention { operations: 3, ..KEEP });
    let under_way = begin(&history, "ada", 1);
    begin_and_end(&history, "grace", 2);
    begin_and_end(&history, "edsger", 3);
    begin_and_end(&history, "barbara", 4);
    assert_eq!((history.len(), numbers(&history, "grace")), (3, vec![]));
    begin(&history, "grace", 5);
    begin(&history, "grace", 6);
    assert_eq!((history.len(), numbers(&history, "grace")), (3, vec![6, 5]));
    // Only operations under way are left. There may be more of them than the limit on records.
    begin(&history, "edsger", 7);
    assert_eq!((history.len(), numbers(&history, "ada")), (4, vec![1]));
    under_way.end(Outcome::Cancelled, at(8));
    assert_eq!((history.len(), numbers(&history, "ada")), (3, vec![]));
}

#[test]
fn one_lab_does_not_displace_the_history_of_others() {
    let history = History::in_memory(KEEP);
    begin_and_end(&history, "grace", 1);
    let most = u32::try_from(MAX_OPERATIONS_OF_LAB).unwrap();
    (2..most + 10).for_each(|number| drop(begin_and_end(&history, "ada", number)));
    assert_eq!(
        (history.operations(&lab("ada")).len(), numbers(&history, "grace")),
        (MAX_OPERATIONS_OF_LAB, vec![1])
    );
    assert_eq!(history.len(), MAX_OPERATIONS_OF_LAB + 1);
}

#[test]
fn a_dropped_operation_does_not_return_to_the_disk_with_a_late_note() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.redb");
    let history = History::open(&file, Retention { operations: 2, ..KEEP }).unwrap();
    let dropped = begin_and_end(&history, "ada", 1);
    (2..100).for_each(|number| drop(begin_and_end(&history, "ada", number)));
    // A running lab can report trouble long after its record was dropped.
    note_info(&dropped, 1);
    history.flush(at(9));
    drop((history, dropped));
    let all = reopen(&file, KEEP);
    assert_eq!(numbers(&all, "ada"), [99, 98]);
    begin(&all, "ada", 100);
    all.flush(at(9));
    drop(all);
    assert_eq!(
        numbers(&reopen(&file, Retention { operations: 1, ..KEEP }), "ada"),
        [100],
        "a smaller bound holds at once"
    );
}

#[test]
fn notes_of_many_operations_at_once_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.redb");
    let history = History::open(&file, KEEP).unwrap();
    let users: Vec<String> = (0..20).map(|user| format!("user{user}")).collect();
    std::thread::scope(|scope| {
        for (number, user) in (1..).zip(&users) {
            let history = &history;
            scope.spawn(move || {
                let entry = begin(history, user, number);
                (1..=50).for_each(|number| note_info(&entry, number));
                entry.end(Outcome::Complete, at(60));
            });
        }
    });
    history.flush(at(9));
    drop(history);
    let reopened = reopen(&file, KEEP);
    for user in &users {
        let record = reopened.last(&lab(user)).unwrap();
        let distinct: BTreeSet<usize> = record.events.iter().map(|event| event.number).collect();
        assert_eq!((distinct.len(), record.ended_at), (50, Some(at(60))), "{user}");
    }
}

fn run(user: &str, since: i64) -> Run {
    Run { key: lab(user), since: at(since), cpu_millis: 1000, memory_bytes: 1 << 30, dask_workers: 0 }
}

fn lab_seconds(history: &History, user: &str, now: i64) -> u64 {
    history.days_of(&Username::parse(user).unwrap()).total(1, at(now)).lab_seconds
}

#[test]
fn what_ended_while_the_service_was_away_is_counted_until_it_was_last_seen() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.redb");
    let history = History::open(&file, KEEP).unwrap();
    for user in ["ada", "bob", "eve"] {
        history.run_began(run(user, 10));
    }
    history.run_ended(&lab("eve"), at(30));
    history.expire(at(100));
    drop(history);
    let reopened = reopen(&file, KEEP);
    reopened.run_began(run("ada", 50));
    reopened.close_runs(|key| *key == lab("ada"));
    assert_eq!(["ada", "bob", "eve"].map(|user| lab_seconds(&reopened, user, 500)), [490, 90, 20]);
}

#[test]
fn users_who_have_used_nothing_for_long_are_forgotten() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("history.redb");
    let history = History::open(&file, KEEP).unwrap();
    history.run_began(run("ada", 10));
    history.run_ended(&lab("ada"), at(20));
    history.expire(at(31 * 24 * 3600));
    drop(history);
    assert!(reopen(&file, KEEP).days_of(&Username::parse("ada").unwrap()).is_empty());
}

/// Names the folder of a small file system of its own, in which a test runs a second time.
const SMALL_DISK: &str = "WASMSPAWNER_TEST_SMALL_DISK";

/// The exit code of a test that cannot have such a file system.
const NO_DISK: i32 = 77;

/// Returns the folder of a small file system. Without one, runs the test `name` again in a process that has one.
fn small_disk(name: &str) -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(SMALL_DISK) {
        return Some(folder.into());
    }
    let folder = tempfile::tempdir().unwrap();
    let mounted = format!("mount -t tmpfs -o size=8m none \"${SMALL_DISK}\" || exit {NO_DISK}; exec \"$@\"");
    let again = Command::new("unshare")
        .args(["--mount", "--map-root-user", "sh", "-c", &mounted, "sh"])
        .arg(std::env::current_exe().unwrap())
        .args([&format!("tests::{name}"), "--exact", "--nocapture"])
        .env(SMALL_DISK, folder.path())
        .output();
    match again {
        Ok(again) if String::from_utf8_lossy(&again.stdout).contains("1 passed") => {}
        Ok(again) if !matches!(again.status.code(), Some(NO_DISK | 1)) => panic!("{again:?}"),
        Err(_) | Ok(_) => println!("skipped: this machine gives no file system to a test"),
    }
    None
}

/// Fills the disk. The file is removed to make room.
fn fill(folder: &Path) -> PathBuf {
    let filler = folder.join("filler");
    let mut file = std::fs::File::create(&filler).unwrap();
    while file.write_all(&[1; 4096]).is_ok() {}
    filler
}

#[test]
fn a_full_disk_delays_the_history_and_loses_nothing() {
    let Some(folder) = small_disk("a_full_disk_delays_the_history_and_loses_nothing") else { return };
    let file = folder.join("history.redb");
    let history = History::open(&file, KEEP).unwrap();
    begin_and_end(&history, "ada", 1);
    history.flush(at(9));
    assert!(!history.is_failing());
    let filler = fill(&folder);
    let mut last = 1;
    while !history.is_failing() {
        last += 1;
        let entry = begin_and_end(&history, "ada", last);
        (1..=50).for_each(|number| note_info(&entry, number));
        history.flush(at(9));
        assert!(last < 1000, "the disk is not full");
    }
    begin_and_end(&history, "eve", last + 1);
    std::fs::remove_file(filler).unwrap();
    history.flush(at(9));
    assert!(!history.is_failing(), "there is room again");
    begin_and_end(&history, "eve", last + 2);
    history.flush(at(9));
    let (of_ada, of_eve) = (numbers(&history, "ada"), numbers(&history, "eve"));
    drop(history);
    let reopened = reopen(&file, KEEP);
    assert_eq!((numbers(&reopened, "ada"), numbers(&reopened, "eve")), (of_ada, of_eve));
}

#[test]
fn a_history_that_begins_on_a_full_disk_is_written_later() {
    let Some(folder) = small_disk("a_history_that_begins_on_a_full_disk_is_written_later") else { return };
    let file = folder.join("history.redb");
    let filler = fill(&folder);
    let history = History::open(&file, KEEP).unwrap();
    assert!(history.is_failing());
    begin_and_end(&history, "ada", 1);
    assert_eq!(numbers(&history, "ada"), [1]);
    for _ in 0..3 {
        history.flush(at(9));
        assert!(history.is_failing(), "it is tried again in vain");
    }
    std::fs::remove_file(filler).unwrap();
    history.flush(at(9));
    assert!(!history.is_failing());
    drop(history);
    assert_eq!(numbers(&reopen(&file, KEEP), "ada"), [1]);
    let no_broken_file = |entry: std::io::Result<std::fs::DirEntry>| {
        assert_eq!(entry.unwrap().file_name(), "history.redb", "nothing was moved aside");
    };
    std::fs::read_dir(&folder).unwrap().for_each(no_broken_file);
}

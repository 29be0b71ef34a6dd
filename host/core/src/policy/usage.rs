//! The daily use of a user, so that a policy can give each user a budget.
//!
//! Days are those of UTC. A user has at most one entry for each of the last [`MAX_DAYS`] days, however much they start.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::names::spawn_key::{SpawnKey, SpawnKind};

/// Largest number of days that a query may cover, the present one included.
pub const MAX_DAYS: u32 = 30;

/// The use in a span of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PastUse {
    /// Time for which labs ran, in seconds; two labs at the same time count twice.
    pub lab_seconds: u64,
    /// Time for which kernels ran, in seconds; two kernels at the same time count twice.
    pub kernel_seconds: u64,
    /// Time for which workers of Dask pools could run, in seconds; two workers at the same time count twice.
    pub dask_worker_seconds: u64,
    /// The CPU limits of labs and of everything that labs started, times the seconds for which each ran.
    pub cpu_seconds: u64,
    /// The memory limits of labs and of everything that labs started, in GiB times the seconds for which each ran.
    pub memory_gib_seconds: u64,
}

/// The use of one user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DaysOfUser {
    /// The use of each day, without the runs that have not ended.
    days: BTreeMap<Date, Seconds>,
    running: Vec<Run>,
}

/// A lab, or a child of a lab, that runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The lab or child.
    #[serde(flatten)]
    pub key: SpawnKey,
    /// The start of the run.
    pub since: Timestamp,
    /// The CPU limits of its pods together, in thousandths of a CPU; 0 without a limit.
    pub cpu_millis: u64,
    /// The memory limits of its pods together, in bytes; 0 without a limit.
    pub memory_bytes: u64,
    /// Largest number of workers of a Dask pool; 0 for anything else.
    #[serde(default)]
    pub dask_workers: u32,
}

/// The fields of [`PastUse`], in units that lose nothing by rounding.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Seconds {
    labs: u64,
    #[serde(default)]
    kernels: u64,
    #[serde(default)]
    dask_workers: u64,
    cpu_millis: u64,
    memory_mib: u64,
}

impl Seconds {
    fn from_run(run: &Run, seconds: u64) -> Self {
        let kind = run.key.kind();
        Self {
            labs: if kind == SpawnKind::Lab { seconds } else { 0 },
            kernels: if kind == SpawnKind::Kernel { seconds } else { 0 },
            dask_workers: u64::from(run.dask_workers).saturating_mul(seconds),
            cpu_millis: run.cpu_millis.saturating_mul(seconds),
            memory_mib: (run.memory_bytes >> 20).saturating_mul(seconds),
        }
    }

    fn greater_of(self, other: Self) -> Self {
        Self {
            labs: self.labs.max(other.labs),
            kernels: self.kernels.max(other.kernels),
            dask_workers: self.dask_workers.max(other.dask_workers),
            cpu_millis: self.cpu_millis.max(other.cpu_millis),
            memory_mib: self.memory_mib.max(other.memory_mib),
        }
    }

    fn plus(self, other: Self) -> Self {
        Self {
            labs: self.labs.saturating_add(other.labs),
            kernels: self.kernels.saturating_add(other.kernels),
            dask_workers: self.dask_workers.saturating_add(other.dask_workers),
            cpu_millis: self.cpu_millis.saturating_add(other.cpu_millis),
            memory_mib: self.memory_mib.saturating_add(other.memory_mib),
        }
    }
}

impl DaysOfUser {
    /// Begins to count a run. Returns false if the run is counted already; its entry then stays unchanged.
    pub fn begin(&mut self, run: Run) -> bool {
        if self.running.iter().any(|known| known.key == run.key) {
            return false;
        }
        self.running.push(run);
        true
    }

    /// Ends a run. Returns false if the run was not counted. A clock that was set back makes nothing negative.
    pub fn end(&mut self, key: &SpawnKey, at: Timestamp) -> bool {
        let Some(place) = self.running.iter().position(|run| run.key == *key) else { return false };
        let run = self.running.swap_remove(place);
        for (day, used) in split(&run, at) {
            let known = self.days.entry(day).or_default();
            *known = known.plus(used);
        }
        self.drop_before(at);
        true
    }

    /// Adds the use of the day that was `days_ago` days before `now`, for tests of policies.
    pub fn add(&mut self, days_ago: u32, now: Timestamp, used: PastUse) {
        let PastUse { lab_seconds, kernel_seconds, dask_worker_seconds, cpu_seconds, memory_gib_seconds } =
            used;
        let day = first_of(days_ago.saturating_add(1), now);
        let known = self.days.entry(day).or_default();
        *known = known.plus(Seconds {
            labs: lab_seconds,
            kernels: kernel_seconds,
            dask_workers: dask_worker_seconds,
            cpu_millis: cpu_seconds.saturating_mul(1000),
            memory_mib: memory_gib_seconds.saturating_mul(1024),
        });
    }

    /// Adds what is stored of the same user. A day counts as the greater of both, because one may contain the other.
    pub fn add_stored(&mut self, stored: Self) {
        for (day, used) in stored.days {
            let known = self.days.entry(day).or_default();
            *known = known.greater_of(used);
        }
        for run in stored.running {
            self.begin(run);
        }
    }

    /// Returns the runs that have not ended.
    pub fn running(&self) -> &[Run] {
        &self.running
    }

    /// Returns the use of the last `days` days, the present one included. `days` is from 1 to [`MAX_DAYS`].
    pub fn total(&self, days: u32, now: Timestamp) -> PastUse {
        let first = first_of(days, now);
        let past = self.days.range(first..).map(|(_, used)| *used);
        let present = self.running.iter().flat_map(|run| split(run, now));
        let present = present.filter(|(day, _)| *day >= first).map(|(_, used)| used);
        let all = past.chain(present).fold(Seconds::default(), Seconds::plus);
        PastUse {
            lab_seconds: all.labs,
            kernel_seconds: all.kernels,
            dask_worker_seconds: all.dask_workers,
            cpu_seconds: all.cpu_millis / 1000,
            memory_gib_seconds: all.memory_mib / 1024,
        }
    }

    /// Drops the days that no query can cover any more. Returns true if something was dropped.
    pub fn drop_before(&mut self, now: Timestamp) -> bool {
        let kept = self.days.split_off(&first_of(MAX_DAYS, now));
        !std::mem::replace(&mut self.days, kept).is_empty()
    }

    /// Returns true if nothing is recorded.
    pub fn is_empty(&self) -> bool {
        self.days.is_empty() && self.running.is_empty()
    }
}

/// Returns the first of `days` days, the last of which is the present one.
fn first_of(days: u32, now: Timestamp) -> Date {
    let before = i64::from(days.clamp(1, MAX_DAYS)) - 1;
    let today = day_of(now);
    today.checked_sub(SignedDuration::from_hours(24 * before)).unwrap_or(today)
}

fn day_of(at: Timestamp) -> Date {
    TimeZone::UTC.to_datetime(at).date()
}

/// Returns the use of a run on each day until `until`, for at most [`MAX_DAYS`] days.
fn split(run: &Run, until: Timestamp) -> Vec<(Date, Seconds)> {
    let mut parts = Vec::new();
    let earliest = midnight(first_of(MAX_DAYS, until));
    let mut from = run.since.max(earliest);
    while from < until {
        let day = day_of(from);
        let end = day.tomorrow().map_or(until, midnight).min(until);
        let seconds = u64::try_from(end.as_second() - from.as_second()).unwrap_or_default();
        parts.push((day, Seconds::from_run(run, seconds)));
        from = end;
    }
    parts
}

/// Returns the beginning of a day.
fn midnight(day: Date) -> Timestamp {
    TimeZone::UTC.to_timestamp(day.to_datetime(jiff::civil::Time::midnight())).unwrap_or(Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::names::lab::LabKey;
    use crate::names::{ChildName, Username};

    const HOUR: u64 = 3600;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn lab(user: &str) -> SpawnKey {
        LabKey::default_server(Username::parse(user).unwrap()).into()
    }

    fn run(since: &str) -> Run {
        Run { key: lab("ada"), since: at(since), cpu_millis: 500, memory_bytes: 512 << 20, dask_workers: 0 }
    }

    fn hours(days: &DaysOfUser, count: u32, now: &str) -> u64 {
        days.total(count, at(now)).lab_seconds / HOUR
    }

    #[test]
    fn days_are_counted_with_what_still_runs() {
        let mut days = DaysOfUser::default();
        days.begin(run("2026-11-20T22:00:00Z"));
        assert!(days.end(&lab("ada"), at("2026-11-21T03:00:00Z")));
        days.begin(run("2026-11-25T10:00:00Z"));
        let now = "2026-11-25T12:00:00Z";
        assert_eq!([1, 4, 5, 6, 7, 30].map(|count| hours(&days, count, now)), [2, 2, 5, 7, 7, 7]);
        assert_eq!(
            days.total(1, at(now)),
            PastUse {
                lab_seconds: 2 * HOUR,
                cpu_seconds: HOUR,
                memory_gib_seconds: HOUR,
                ..PastUse::default()
            }
        );
    }

    #[test]
    fn what_is_stored_and_what_is_counted_anew_is_not_counted_twice() {
        let (began, ended) = ("2026-11-25T10:00:00Z", at("2026-11-25T12:00:00Z"));
        let (mut stored, mut counted) = (DaysOfUser::default(), DaysOfUser::default());
        stored.begin(run(began));
        for _ in 0..2 {
            counted.add_stored(stored.clone());
            assert_eq!(counted, stored);
        }
        stored.end(&lab("ada"), ended);
        counted.end(&lab("ada"), ended);
        counted.add_stored(stored.clone());
        assert_eq!(counted, stored);
        assert_eq!(hours(&counted, 1, "2026-11-25T13:00:00Z"), 2);
    }

    #[test]
    fn what_a_lab_has_started_is_counted_by_itself() {
        let (mut days, began) = (DaysOfUser::default(), "2026-11-25T10:00:00Z");
        let lab = LabKey::default_server(Username::parse("ada").unwrap());
        let name = |name: &str| ChildName::parse(name).unwrap();
        days.begin(run(began));
        days.begin(Run { key: SpawnKey::kernel(lab.clone(), name("k1")), ..run(began) });
        days.begin(Run { key: SpawnKey::kernel(lab.clone(), name("k2")), ..run(began) });
        days.begin(Run { key: SpawnKey::dask_pool(lab, name("pool")), dask_workers: 4, ..run(began) });
        let PastUse { lab_seconds, kernel_seconds, dask_worker_seconds, cpu_seconds, .. } =
            days.total(1, at("2026-11-25T12:00:00Z"));
        let hours = [lab_seconds, kernel_seconds, dask_worker_seconds, cpu_seconds].map(|it| it / HOUR);
        assert_eq!(hours, [2, 4, 8, 4]);
    }

    #[test]
    fn what_an_earlier_release_has_written_is_read() {
        let written =
            r#"{"days": {"2026-11-25": {"labs": 60, "cpu_millis": 1000, "memory_mib": 0}}, "running": []}"#;
        let days: DaysOfUser = serde_json::from_str(written).unwrap();
        assert_eq!(days.total(1, at("2026-11-25T12:00:00Z")).lab_seconds, 60);
    }

    #[test]
    fn what_is_asked_for_is_between_a_day_and_the_longest_time() {
        let mut days = DaysOfUser::default();
        days.begin(run("2026-01-01T00:00:00Z"));
        let now = "2026-11-25T12:00:00Z";
        assert_eq!([0, 1].map(|count| hours(&days, count, now)), [12, 12]);
        assert_eq!([30, 31, u32::MAX].map(|count| hours(&days, count, now)), [29 * 24 + 12; 3]);
    }

    #[test]
    fn a_run_is_counted_once_and_never_negatively() {
        let mut days = DaysOfUser::default();
        days.begin(run("2026-11-25T10:00:00Z"));
        days.begin(run("2026-11-25T11:00:00Z"));
        assert_eq!(hours(&days, 1, "2026-11-25T12:00:00Z"), 2);
        assert!(days.end(&lab("ada"), at("2026-11-25T09:00:00Z")), "the clock was set back");
        assert!(!days.end(&lab("ada"), at("2026-11-25T12:00:00Z")), "it has ended");
        assert_eq!(hours(&days, 30, "2026-11-25T12:00:00Z"), 0);
    }

    proptest! {
        /// Starting many labs neither clears a debt nor makes the service store much.
        #[test]
        fn many_runs_are_kept_in_one_entry_for_each_day(spans in prop::collection::vec((0i64..90 * 24, 1i64..50), 0..200)) {
            let mut days = DaysOfUser::default();
            let begin = at("2026-01-01T00:00:00Z");
            let mut at = begin;
            let mut total = 0;
            for (pause, long) in spans {
                at += SignedDuration::from_hours(pause % 5);
                days.begin(Run { since: at, ..run("2026-01-01T00:00:00Z") });
                at += SignedDuration::from_hours(long);
                days.end(&lab("ada"), at);
                total += long;
                prop_assert!(days.days.len() <= MAX_DAYS as usize);
            }
            if at < begin + SignedDuration::from_hours(24 * 29) {
                prop_assert_eq!(days.total(MAX_DAYS, at).lab_seconds, u64::try_from(total).unwrap() * HOUR);
            }
        }
    }
}

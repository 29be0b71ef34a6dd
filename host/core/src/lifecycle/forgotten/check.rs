//! Decides which labs the Hub no longer knows, and which of those have been unknown for long enough to be stopped.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use super::HubServers;
use crate::names::lab::{JobId, LabKey};

/// The number of labs below which any share may be forgotten: a newly installed Hub may well know none of three labs.
const FEW: usize = 10;

/// The rules for when a lab counts as forgotten, and when it is stopped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenRules {
    /// The minimum age: a younger lab never counts as forgotten.
    pub min_age: SignedDuration,
    /// The time for which a lab must be found forgotten before it is stopped. `None`: no lab is stopped.
    pub stop_after: Option<SignedDuration>,
    /// The largest percentage of labs that may look forgotten. Above it, the result is not trusted and no lab is
    /// stopped.
    pub max_percent: u8,
    /// The time between two checks.
    pub check_every: SignedDuration,
}

/// A running or starting lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownLab {
    /// The user and the server of the lab.
    pub key: LabKey,
    /// The spawn that created it. A later lab with the same key has another id.
    pub job_id: JobId,
    /// The time at which that spawn began.
    pub started_at: Timestamp,
}

/// A lab that the Hub does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForgottenLab {
    /// The lab.
    pub lab: KnownLab,
    /// The time of the check that first found the lab forgotten.
    pub since: Timestamp,
    /// The time for which the lab was found forgotten. Time in which the Hub did not answer is not included.
    pub counted: SignedDuration,
}

/// The reason why no lab is stopped although some look forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "{forgotten} of {labs} labs look forgotten, which is more than {max_percent} % (hub.forgotten.max_percent); \
     JupyterHub may be using another database, so none is stopped"
)]
pub struct ImplausibleResult {
    /// Number of labs that look forgotten.
    pub forgotten: usize,
    /// Number of labs that were compared.
    pub labs: usize,
    /// The largest percentage that would have been trusted.
    pub max_percent: u8,
}

/// The result of one comparison with the Hub.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Number of labs that were compared.
    pub labs: usize,
    /// The labs that the Hub does not know, sorted.
    pub forgotten: Vec<ForgottenLab>,
    /// Set when so many labs look forgotten that the result is not trusted.
    pub withheld: Option<ImplausibleResult>,
    /// The forgotten labs that are to be stopped now.
    pub stop: Vec<ForgottenLab>,
}

/// Tracks from check to check how long each lab has been forgotten. A restart of the service starts the count again.
#[derive(Debug, Default)]
pub struct Tracker {
    forgotten: BTreeMap<LabKey, ForgottenLab>,
    /// Time of the last check, unless its result was not trusted.
    trusted_at: Option<Timestamp>,
}

impl Tracker {
    /// Compares the labs with the Hub's servers. The list `labs` must have been taken before the Hub was asked, because
    /// a lab that was started later cannot be in the Hub's answer.
    pub fn compare(
        &mut self,
        labs: &[KnownLab],
        hub: &HubServers,
        rules: &ForgottenRules,
        now: Timestamp,
    ) -> Check {
        let forgotten: Vec<&KnownLab> =
            labs.iter().filter(|lab| is_forgotten(lab, hub, rules, now)).collect();
        let withheld = withheld(forgotten.len(), labs.len(), rules.max_percent);
        let passed = self.passed(rules, now);
        let before = std::mem::take(&mut self.forgotten);
        let track = |lab: &KnownLab| match before.get(&lab.key).filter(|known| known.lab == *lab) {
            Some(known) if withheld.is_some() => known.clone(),
            Some(known) => ForgottenLab { counted: known.counted + passed, ..known.clone() },
            None => ForgottenLab { lab: lab.clone(), since: now, counted: SignedDuration::ZERO },
        };
        self.forgotten = forgotten.into_iter().map(|lab| (lab.key.clone(), track(lab))).collect();
        self.trusted_at = withheld.is_none().then_some(now);
        let forgotten: Vec<ForgottenLab> = self.forgotten.values().cloned().collect();
        let due = |lab: &&ForgottenLab| rules.stop_after.is_some_and(|after| lab.counted >= after);
        let stop =
            if withheld.is_some() { Vec::new() } else { forgotten.iter().filter(due).cloned().collect() };
        Check { labs: labs.len(), forgotten, withheld, stop }
    }

    /// Records that the Hub gave no usable answer. Time until the next usable answer does not count.
    pub fn no_answer(&mut self) {
        self.trusted_at = None;
    }

    /// Returns the time since the last trusted check, at most two intervals. If the service itself was suspended for a
    /// day, the state of the Hub during that day is unknown.
    fn passed(&self, rules: &ForgottenRules, now: Timestamp) -> SignedDuration {
        let passed = self.trusted_at.map_or(SignedDuration::ZERO, |last| now.duration_since(last));
        passed.clamp(SignedDuration::ZERO, rules.check_every.saturating_mul(2))
    }
}

fn is_forgotten(lab: &KnownLab, hub: &HubServers, rules: &ForgottenRules, now: Timestamp) -> bool {
    now.duration_since(lab.started_at) >= rules.min_age && !hub.know(&lab.key)
}

fn withheld(forgotten: usize, labs: usize, max_percent: u8) -> Option<ImplausibleResult> {
    let too_many = labs >= FEW && forgotten * 100 > labs * usize::from(max_percent);
    too_many.then_some(ImplausibleResult { forgotten, labs, max_percent })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{ServerName, Username};

    const DAY: SignedDuration = SignedDuration::from_hours(24);
    const EVERY: SignedDuration = SignedDuration::from_mins(10);

    fn rules() -> ForgottenRules {
        ForgottenRules {
            min_age: SignedDuration::from_mins(15),
            stop_after: Some(DAY),
            max_percent: 50,
            check_every: EVERY,
        }
    }

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + minutes * 60).unwrap()
    }

    fn lab(user: &str, server: &str, started: i64) -> KnownLab {
        let key = LabKey::new(Username::parse(user).unwrap(), ServerName::parse(server).unwrap());
        KnownLab { key, job_id: JobId::nil(), started_at: at(started) }
    }

    fn names(labs: &[ForgottenLab]) -> Vec<String> {
        labs.iter().map(|forgotten| forgotten.lab.key.to_string()).collect()
    }

    /// Creates `count` labs named `u0`, `u1` and so on, old enough to count as forgotten.
    fn crowd(count: usize) -> Vec<KnownLab> {
        (0..count).map(|number| lab(&format!("u{number}"), "", -60)).collect()
    }

    /// Returns the answer of a Hub that knows the labs from index `first` on.
    fn knowing(labs: &[KnownLab], first: usize) -> HubServers {
        labs[first..].iter().map(|lab| (lab.key.user.as_str(), lab.key.server.as_str())).collect()
    }

    /// Columns: the servers that the Hub lists; the lab; whether the lab counts as forgotten.
    #[test]
    fn a_lab_is_forgotten_if_the_hub_does_not_list_it_and_it_is_old_enough() {
        for (hub, user, server, started, expected) in [
            (vec![("ada", "")], "ada", "", -60, false),
            (vec![("ada", "")], "ada", "gpu", -60, true),
            (vec![("ada", "gpu")], "ada", "", -60, true),
            (vec![("bob", "")], "ada", "", -60, true),
            (vec![("Ada", "")], "ada", "", -60, true),
            (vec![], "ada", "", -60, true),
            (vec![], "ada", "", -15, true),
            (vec![], "ada", "", -14, false),
            (vec![], "ada", "", 5, false),
        ] {
            let hub: HubServers = hub.into_iter().collect();
            let check = Tracker::default().compare(&[lab(user, server, started)], &hub, &rules(), at(0));
            assert_eq!(check.forgotten.len() == 1, expected, "{user}/{server} {started} {hub:?}");
            assert_eq!(check.stop, [], "never at first sight");
        }
    }

    /// Columns: number of labs; how many of them look forgotten; whether the result is trusted.
    #[test]
    fn a_result_is_trusted_up_to_the_configured_percentage() {
        for (labs, forgotten, percent, believed) in [
            (1, 1, 50, true),
            (9, 9, 50, true),
            (10, 5, 50, true),
            (10, 6, 50, false),
            (10, 10, 50, false),
            (10, 10, 100, true),
            (1000, 500, 50, true),
            (1000, 501, 50, false),
            (1000, 11, 1, false),
            (0, 0, 50, true),
        ] {
            let all = crowd(labs);
            let rules =
                ForgottenRules { max_percent: percent, stop_after: Some(SignedDuration::ZERO), ..rules() };
            let check = Tracker::default().compare(&all, &knowing(&all, forgotten), &rules, at(0));
            assert_eq!(check.forgotten.len(), forgotten, "they are listed in any case");
            let stopped = if believed { forgotten } else { 0 };
            assert_eq!(
                (check.withheld.is_none(), check.stop.len()),
                (believed, stopped),
                "{forgotten} of {labs}"
            );
        }
    }

    /// Runs a check every ten minutes, from minute `from` to minute `to`.
    fn check(tracker: &mut Tracker, labs: &[KnownLab], hub: &HubServers, from: i64, to: i64) -> Check {
        (from..=to).step_by(10).map(|minute| tracker.compare(labs, hub, &rules(), at(minute))).last().unwrap()
    }

    const DAY_IN_MINUTES: i64 = 24 * 60;

    #[test]
    fn a_lab_is_stopped_once_it_was_forgotten_for_stop_after() {
        let (labs, nobody) = ([lab("ada", "", -60)], HubServers::default());
        let mut tracker = Tracker::default();
        let early = check(&mut tracker, &labs, &nobody, 0, DAY_IN_MINUTES - 10);
        assert_eq!((names(&early.forgotten), early.stop.len()), (vec!["ada".to_owned()], 0));
        let late = check(&mut tracker, &labs, &nobody, DAY_IN_MINUTES, DAY_IN_MINUTES);
        assert_eq!(names(&late.stop), ["ada"]);
        assert_eq!((late.stop[0].since, late.stop[0].counted), (at(0), DAY));
        let off = ForgottenRules { stop_after: None, ..rules() };
        assert_eq!(tracker.compare(&labs, &nobody, &off, at(DAY_IN_MINUTES + 10)).stop, []);
    }

    #[test]
    fn a_lab_that_the_hub_lists_once_is_counted_from_zero() {
        let (labs, nobody) = ([lab("ada", "", -60)], HubServers::default());
        let mut tracker = Tracker::default();
        check(&mut tracker, &labs, &nobody, 0, DAY_IN_MINUTES - 20);
        tracker.compare(&labs, &knowing(&labs, 0), &rules(), at(DAY_IN_MINUTES - 10));
        let again = check(&mut tracker, &labs, &nobody, DAY_IN_MINUTES, 2 * DAY_IN_MINUTES - 10);
        assert_eq!((again.stop.len(), again.forgotten[0].since), (0, at(DAY_IN_MINUTES)));
        assert_eq!(check(&mut tracker, &labs, &nobody, 2 * DAY_IN_MINUTES, 2 * DAY_IN_MINUTES).stop.len(), 1);
    }

    #[test]
    fn the_next_lab_of_the_same_name_is_counted_from_zero() {
        let nobody = HubServers::default();
        let first = [lab("ada", "", -60)];
        let second = [KnownLab { job_id: JobId::new(uuid::Uuid::from_u128(7)), ..lab("ada", "", -60) }];
        let mut tracker = Tracker::default();
        check(&mut tracker, &first, &nobody, 0, DAY_IN_MINUTES - 10);
        assert_eq!(check(&mut tracker, &second, &nobody, DAY_IN_MINUTES, DAY_IN_MINUTES).stop, []);
    }

    #[test]
    fn time_without_an_answer_does_not_count() {
        let (labs, nobody) = ([lab("ada", "", -60)], HubServers::default());
        let mut tracker = Tracker::default();
        check(&mut tracker, &labs, &nobody, 0, DAY_IN_MINUTES / 2);
        tracker.no_answer();
        let back = check(&mut tracker, &labs, &nobody, 10 * DAY_IN_MINUTES, 10 * DAY_IN_MINUTES);
        assert_eq!((back.forgotten[0].counted, back.stop.len()), (DAY / 2, 0));
        let end = 10 * DAY_IN_MINUTES + DAY_IN_MINUTES / 2;
        assert_eq!(check(&mut tracker, &labs, &nobody, 10 * DAY_IN_MINUTES + 10, end).stop.len(), 1);
    }

    #[test]
    fn at_most_two_intervals_are_counted_between_two_checks() {
        let (labs, nobody) = ([lab("ada", "", -60)], HubServers::default());
        let mut tracker = Tracker::default();
        check(&mut tracker, &labs, &nobody, 0, 0);
        let later = check(&mut tracker, &labs, &nobody, 10 * DAY_IN_MINUTES, 10 * DAY_IN_MINUTES);
        assert_eq!((later.forgotten[0].counted, later.stop.len()), (EVERY * 2, 0));
        let back_in_time = check(&mut tracker, &labs, &nobody, 5, 5);
        assert_eq!(back_in_time.forgotten[0].counted, EVERY * 2);
    }

    /// The Hub uses another database for a while, and people work with it. The labs that looked forgotten then must not
    /// be stopped at the moment when enough other labs exist for the result to be trusted.
    #[test]
    fn time_in_which_too_many_looked_forgotten_does_not_count() {
        let old = crowd(10);
        let mut tracker = Tracker::default();
        let doubted = check(&mut tracker, &old, &HubServers::default(), 0, 2 * DAY_IN_MINUTES);
        assert_eq!((doubted.stop.len(), doubted.forgotten.len()), (0, 10));
        let withheld = doubted.withheld.unwrap();
        assert!(withheld.to_string().starts_with("10 of 10 labs look forgotten"), "{withheld}");
        let all = crowd(21);
        let hub = knowing(&all, 10);
        let then = 2 * DAY_IN_MINUTES + 10;
        assert_eq!(check(&mut tracker, &all, &hub, then, then + DAY_IN_MINUTES - 10).stop, []);
        assert_eq!(
            check(&mut tracker, &all, &hub, then + DAY_IN_MINUTES, then + DAY_IN_MINUTES).stop.len(),
            10
        );
    }
}

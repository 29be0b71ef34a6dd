//! The use of users day by day.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use wasmspawner_core::names::Username;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::policy::usage::{DaysOfUser, Run};

use super::History;
use super::store::Write;

/// The days of all users.
#[derive(Default)]
pub(super) struct Days {
    users: Mutex<Users>,
}

#[derive(Default)]
struct Users {
    days: HashMap<Username, DaysOfUser>,
    counts: Counts,
}

/// What counts: what others have stored, or what this process has counted.
#[derive(Default)]
enum Counts {
    /// What is stored.
    #[default]
    Stored,
    /// Both. This process counts, and does not know yet everything that was stored before. It has ended these runs; the
    /// store may still have them.
    Both { ended: HashMap<SpawnKey, Timestamp> },
    /// What this process has counted.
    Counted,
}

impl Days {
    /// From now on this process counts.
    pub(super) fn begin_to_count(&self) {
        let mut users = self.lock();
        if matches!(users.counts, Counts::Stored) {
            users.counts = Counts::Both { ended: HashMap::new() };
        }
    }

    /// This process knows everything that was stored before it began to count. What is stored from now on comes from here.
    pub(super) fn complete(&self) {
        self.lock().counts = Counts::Counted;
    }

    /// Takes over what is stored of a user; `None` if that is gone. Returns true if the memory has something else, which is
    /// to be stored.
    pub(super) fn learn(&self, user: &Username, stored: Option<DaysOfUser>) -> bool {
        let mut users = self.lock();
        let Users { days, counts } = &mut *users;
        match (counts, stored) {
            (Counts::Stored, Some(stored)) => drop(days.insert(user.clone(), stored)),
            (Counts::Stored, None) => drop(days.remove(user)),
            (Counts::Both { ended }, Some(stored)) => {
                let mut earlier = stored.clone();
                for run in stored.running() {
                    if let Some(at) = ended.get(&run.key) {
                        earlier.end(&run.key, *at);
                    }
                }
                let known = days.entry(user.clone()).or_default();
                known.add_stored(earlier);
                return *known != stored;
            }
            (Counts::Both { .. } | Counts::Counted, stored) => return days.get(user) != stored.as_ref(),
        }
        false
    }

    /// Notes the end of a run that the store may have and the memory does not have yet.
    fn note_end(&self, key: &SpawnKey, at: Timestamp) {
        if let Counts::Both { ended } = &mut self.lock().counts {
            // The run that was stored is the first of several.
            ended.entry(key.clone()).or_insert(at);
        }
    }

    /// The days of a user; `None` if there is nothing.
    pub(super) fn days_of(&self, user: &Username) -> Option<DaysOfUser> {
        self.lock().days.get(user).cloned()
    }

    /// All users of whom something is known.
    pub(super) fn users(&self) -> Vec<Username> {
        self.lock().days.keys().cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, Users> {
        self.users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    /// The use of the user day by day.
    pub fn days_of(&self, user: &Username) -> DaysOfUser {
        self.memory.days.days_of(user).unwrap_or_default()
    }

    /// Begins to count a lab, or a child of a lab. Nothing changes if it is counted already.
    pub fn run_began(&self, run: Run) {
        let user = run.key.lab.user.clone();
        self.change_days(user, |days| days.begin(run));
    }

    /// Ends the count of a lab or child that does not run any more.
    pub fn run_ended(&self, key: &SpawnKey, at: Timestamp) {
        self.memory.days.note_end(key, at);
        self.change_days(key.lab.user.clone(), |days| days.end(key, at));
    }

    /// Closes the runs that ended while the service was down. They are counted until the service was last known to be
    /// running. Called after a restart.
    pub fn close_runs(&self, still_runs: impl Fn(&SpawnKey) -> bool) {
        let Some(last_seen) = self.memory.last_seen() else { return };
        for key in self.counted().into_iter().filter(|key| !still_runs(key)) {
            self.run_ended(&key, last_seen);
        }
    }

    /// The labs and children that are counted as running.
    fn counted(&self) -> Vec<SpawnKey> {
        self.memory
            .days
            .lock()
            .days
            .values()
            .flat_map(DaysOfUser::running)
            .map(|run| run.key.clone())
            .collect()
    }

    /// Drops the days that nobody can ask for any more, and notes that the service is running.
    pub(super) fn keep_days(&self, now: Timestamp) {
        for user in self.memory.days.users() {
            self.change_days(user, |days| days.drop_before(now));
        }
        self.send(Write::Seen(now));
    }

    /// Changes the days of a user. `change` returns true if it has changed something.
    fn change_days(&self, user: Username, change: impl FnOnce(&mut DaysOfUser) -> bool) {
        let mut users = self.memory.days.lock();
        let days = users.days.entry(user.clone()).or_default();
        let changed = change(days);
        let left = (!days.is_empty()).then(|| days.clone());
        if left.is_none() {
            users.days.remove(&user);
        }
        if !changed {
            return;
        }
        // Sent while the lock is held, so that the store gets the changes in their order.
        self.send(Write::Days(user, left));
    }
}

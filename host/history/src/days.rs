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
    of_users: Mutex<HashMap<Username, DaysOfUser>>,
}

impl Days {
    /// Takes over what is stored of a user: as it is, or if this process `writes`, in addition to what it knows. Returns what
    /// is to be stored instead.
    pub(super) fn learn(&self, user: &Username, stored: DaysOfUser, writes: bool) -> Option<DaysOfUser> {
        let mut users = self.lock();
        let known = users.entry(user.clone()).or_default();
        if !writes {
            *known = stored;
            return None;
        }
        known.add_stored(stored.clone());
        (*known != stored).then(|| known.clone())
    }

    /// The stored entry of a user is gone.
    pub(super) fn forget(&self, user: &Username) {
        self.lock().remove(user);
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Username, DaysOfUser>> {
        self.of_users.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl History {
    /// The use of the user day by day.
    pub fn days_of(&self, user: &Username) -> DaysOfUser {
        self.memory.days.lock().get(user).cloned().unwrap_or_default()
    }

    /// Begins to count a lab, or a child of a lab. Nothing changes if it is counted already.
    pub fn run_began(&self, run: Run) {
        let user = run.key.lab.user.clone();
        self.change_days(user, |days| days.begin(run));
    }

    /// Ends the count of a lab or child that does not run any more.
    pub fn run_ended(&self, key: &SpawnKey, at: Timestamp) {
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
        self.memory.days.lock().values().flat_map(DaysOfUser::running).map(|run| run.key.clone()).collect()
    }

    /// Drops the days that nobody can ask for any more, and notes that the service is running.
    pub(super) fn keep_days(&self, now: Timestamp) {
        let users: Vec<Username> = self.memory.days.lock().keys().cloned().collect();
        for user in users {
            self.change_days(user, |days| days.drop_before(now));
        }
        self.send(Write::Seen(now));
    }

    /// Changes the days of a user. `change` returns true if it has changed something.
    fn change_days(&self, user: Username, change: impl FnOnce(&mut DaysOfUser) -> bool) {
        let mut users = self.memory.days.lock();
        let days = users.entry(user.clone()).or_default();
        let changed = change(days);
        let left = (!days.is_empty()).then(|| days.clone());
        if left.is_none() {
            users.remove(&user);
        }
        if !changed {
            return;
        }
        // Sent while the lock is held, so that the store gets the changes in their order.
        self.send(Write::Days(user, left));
    }
}

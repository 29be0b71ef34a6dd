//! Stands in for the host in native tests: the child that a call is about, what the user has, and the blueprints.

use std::cell::RefCell;

use crate::bindings::host::{ChildOfLab, LabBlueprint, UseOfDays, UseOfUser};
use crate::options::Options;

thread_local! {
    static SUBJECT: RefCell<Subject> = RefCell::default();
}

/// The subject of a call beside the user and the options, for tests. The default is a lab of a user who has nothing
/// else.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    /// The kernel or Dask pool; `None` for a lab itself.
    pub child: Option<ChildOfLab>,
    /// The present use of the user, without the subject.
    pub present_use: Option<UseOfUser>,
    /// The past use of the user: the number of days ago, 0 for today, and the use on that day.
    pub past_use: Vec<(u32, UseOfDays)>,
    /// The blueprints of the lab.
    pub blueprint: Option<LabBlueprint>,
    /// The submission with which the server was last started.
    pub last_options: Options,
}

/// Runs `hook` for this subject.
pub(crate) fn with<T>(subject: &Subject, hook: impl FnOnce() -> T) -> T {
    SUBJECT.set(subject.clone());
    let result = hook();
    SUBJECT.take();
    result
}

pub(crate) fn child() -> Option<ChildOfLab> {
    SUBJECT.with_borrow(|subject| subject.child.clone())
}

pub(crate) fn blueprint() -> Option<LabBlueprint> {
    SUBJECT.with_borrow(|subject| subject.blueprint.clone())
}

pub(crate) fn last_options() -> Options {
    SUBJECT.with_borrow(|subject| subject.last_options.clone())
}

pub(crate) fn present_use() -> UseOfUser {
    let nothing =
        UseOfUser { labs: 0, kernels: 0, dask_pools: 0, dask_workers: 0, cpu_millis: 0, memory_bytes: 0 };
    SUBJECT.with_borrow(|subject| subject.present_use).unwrap_or(nothing)
}

pub(crate) fn past_use(days: u32) -> UseOfDays {
    let days = days.clamp(1, 30);
    let mut sum = UseOfDays::default();
    SUBJECT.with_borrow(|subject| {
        for (_, used) in subject.past_use.iter().filter(|(days_ago, _)| *days_ago < days) {
            sum.lab_seconds += used.lab_seconds;
            sum.kernel_seconds += used.kernel_seconds;
            sum.dask_worker_seconds += used.dask_worker_seconds;
            sum.cpu_seconds += used.cpu_seconds;
            sum.memory_gib_seconds += used.memory_gib_seconds;
        }
    });
    sum
}

//! Decides which worker pods to create and to delete, so that a pool reaches its target.

use std::cmp::Reverse;

use jiff::{SignedDuration, Timestamp};

use crate::lifecycle::stage::{ObservedPod, PodLife};

/// The minimum age of an ended worker before it is replaced. A worker that cannot start is retried at this pace, and
/// its log can be read in the meantime.
const REPLACED_AFTER: SignedDuration = SignedDuration::from_secs(20);

/// A worker's pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WorkerPod {
    /// The name of the pod.
    pub name: String,
    /// The uid of the pod.
    pub uid: Option<String>,
    /// The state of the pod.
    pub life: PodLife,
    /// The time at which the pod was created.
    pub created: Option<Timestamp>,
}

impl From<&ObservedPod> for WorkerPod {
    fn from(pod: &ObservedPod) -> Self {
        Self { name: pod.name.clone(), uid: pod.uid.clone(), life: pod.life(), created: pod.created() }
    }
}

/// The worker pods to create and to delete.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkerPlan {
    /// The number of workers to create.
    pub create: u32,
    /// The pods to delete: their names and uids.
    pub delete: Vec<(String, Option<String>)>,
    /// The time at which the plan changes if nothing else happens.
    pub again_at: Option<Timestamp>,
}

impl WorkerPlan {
    /// Returns true if there is nothing to do now.
    pub fn is_empty(&self) -> bool {
        self.create == 0 && self.delete.is_empty()
    }
}

/// Plans the worker pods of a pool that is to have `target` workers.
///
/// A running worker is never deleted, because it may hold data: the pool's scheduler retires it, and its pod then ends.
/// Among workers that do not run yet, the youngest are deleted first.
pub fn plan_workers(target: u32, pods: &[WorkerPod], now: Timestamp) -> WorkerPlan {
    let mut plan = WorkerPlan::default();
    let (mut present, mut waiting, mut resting) = (0_u32, Vec::new(), Vec::new());
    for pod in pods {
        let due = pod.created.and_then(|at| at.checked_add(REPLACED_AFTER).ok());
        match (pod.life, due) {
            (PodLife::Deleting, _) => {}
            (PodLife::Running, _) => present += 1,
            (PodLife::Waiting, _) => {
                present += 1;
                waiting.push(pod);
            }
            (PodLife::Failed | PodLife::Succeeded, Some(due)) if due > now => resting.push((due, pod)),
            (PodLife::Failed | PodLife::Succeeded, _) => plan.delete.push(named(pod)),
        }
    }
    for (due, pod) in resting {
        // An ended worker that the pool still needs is replaced when it is due. A retired worker is not needed any
        // more.
        if present < target {
            present += 1;
            plan.again_at = plan.again_at.into_iter().chain([due]).min();
        } else {
            plan.delete.push(named(pod));
        }
    }
    plan.create = target.saturating_sub(present);
    waiting.sort_by_key(|pod| Reverse((pod.created, pod.name.clone())));
    let surplus = usize::try_from(present.saturating_sub(target)).unwrap_or(usize::MAX);
    plan.delete.extend(waiting.into_iter().take(surplus).map(named));
    plan
}

fn named(pod: &WorkerPod) -> (String, Option<String>) {
    (pod.name.clone(), pod.uid.clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods(text: &str) -> Vec<WorkerPod> {
        let pod = |(at, letter): (usize, char)| WorkerPod {
            name: at.to_string(),
            uid: None,
            life: match letter {
                'w' => PodLife::Waiting,
                'r' => PodLife::Running,
                's' => PodLife::Succeeded,
                'f' => PodLife::Failed,
                _ => PodLife::Deleting,
            },
            created: Timestamp::from_second(i64::try_from(at).unwrap()).ok(),
        };
        text.chars().enumerate().map(pod).collect()
    }

    /// Columns: the target; the pods, which are created one per second; the present second; the number to create; the
    /// pods to delete.
    #[test]
    fn a_pool_gets_the_workers_that_it_is_to_have() {
        for (target, present, now, create, delete) in [
            (0, "", 0, 0, ""),
            (3, "", 0, 3, ""),
            (3, "rw", 5, 1, ""),
            (2, "rwrw", 5, 0, "31"),
            (1, "rrw", 5, 0, "2"),
            (0, "rr", 5, 0, ""),
            (2, "rs", 5, 0, ""),
            (2, "rs", 21, 1, "1"),
            (1, "rs", 5, 0, "1"),
            (2, "rd", 5, 1, ""),
            (2, "rf", 5, 0, ""),
            (2, "rf", 21, 1, "1"),
            (1, "rf", 5, 0, "1"),
        ] {
            let plan = plan_workers(target, &pods(present), Timestamp::from_second(now).unwrap());
            let deleted: String = plan.delete.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!((plan.create, deleted.as_str()), (create, delete), "{target} of {present:?} at {now}");
        }
    }

    #[test]
    fn a_failed_worker_is_replaced_later() {
        let plan = plan_workers(1, &pods("f"), Timestamp::from_second(5).unwrap());
        assert!(plan.is_empty());
        assert_eq!(plan.again_at, Timestamp::from_second(20).ok());
    }
}

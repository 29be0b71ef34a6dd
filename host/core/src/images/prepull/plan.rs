use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use super::{DailyHours, Pull, PullHistory, PullPod, PullState};
use crate::images::NodeImages;

/// The age up to which a node is new. New nodes are prepared at any hour.
const NEW: SignedDuration = SignedDuration::from_hours(1);

/// The limits of pulls: their number at once, their duration, and their hours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrepullLimits {
    /// Largest number of pulls at once on one node.
    pub per_node: usize,
    /// Largest number of pulls at once in the cluster.
    pub at_once: usize,
    /// The time limit of a pull. A pull that takes longer has failed.
    pub time_limit: SignedDuration,
    /// The hours in which pulls begin, except on new nodes. If the list is empty, pulls begin at any time.
    pub hours: Vec<DailyHours>,
}

/// The actions to carry out now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullPlan {
    /// The pulls to begin, the most important first; those that were tried before come after the others.
    pub begin: Vec<Pull>,
    /// The pods to remove.
    pub remove: Vec<(PullPod, Ending)>,
}

/// The way in which a pull ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The node has the image.
    Pulled,
    /// The pull has failed for this reason.
    Failed(String),
    /// The node is gone or takes no labs any more, or the image is not wanted any more.
    NotNeeded,
}

/// Decides on the actions, given the images that nodes lack and the pods that exist. Each pod counts until it is gone,
/// so there are never more than the limits allow.
pub fn plan(
    missing: &[Pull],
    pods: &[PullPod],
    history: &PullHistory,
    nodes: &NodeImages,
    limits: &PrepullLimits,
    now: Timestamp,
) -> PullPlan {
    let lacking: BTreeSet<&Pull> = missing.iter().collect();
    let mut plan = PullPlan::default();
    let mut under_way = BTreeSet::new();
    let mut on_node = BTreeMap::<&str, usize>::new();
    for pod in pods {
        *on_node.entry(&pod.pull.node).or_default() += 1;
        under_way.insert(&pod.pull);
        if !pod.is_being_deleted
            && let Some(ending) = ending(pod, lacking.contains(&pod.pull), limits, now)
        {
            plan.remove.push((pod.clone(), ending));
        }
    }
    let in_hours = limits.hours.is_empty() || limits.hours.iter().any(|hours| hours.include(now));
    let is_new = |pull: &Pull| {
        let created = nodes.node(&pull.node).and_then(|node| node.created);
        created.is_some_and(|created| now.duration_since(created) < NEW)
    };
    let mut free = limits.at_once.saturating_sub(pods.len());
    // The pull that was tried last comes last, so that failing pulls do not delay others.
    let mut in_turn: Vec<&Pull> = missing.iter().collect();
    in_turn.sort_by_cached_key(|pull| history.tried_at(pull));
    for pull in in_turn {
        if free == 0 {
            break;
        }
        let here = on_node.entry(&pull.node).or_default();
        let may_begin = *here < limits.per_node && (in_hours || is_new(pull));
        if may_begin && !under_way.contains(pull) && !history.is_waiting(pull, now) {
            *here += 1;
            free -= 1;
            plan.begin.push(pull.clone());
        }
    }
    plan
}

fn ending(pod: &PullPod, is_needed: bool, limits: &PrepullLimits, now: Timestamp) -> Option<Ending> {
    match &pod.state {
        PullState::Pulled => Some(Ending::Pulled),
        PullState::Failed(_) | PullState::Pulling if !is_needed => Some(Ending::NotNeeded),
        PullState::Failed(reason) => Some(Ending::Failed(reason.clone())),
        PullState::Pulling if now.duration_since(pod.since) > limits.time_limit => {
            let limit = limits.time_limit;
            Some(Ending::Failed(format!("it was not done after {limit:#} (`images.prepull.time_limit`)")))
        }
        PullState::Pulling => None,
    }
}

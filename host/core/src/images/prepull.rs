//! Which images nodes pull before somebody asks for them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use super::{ImageReference, Inventory, LabNode, NodeImages, WantedImage};

/// One image that one node is to pull.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Pull {
    /// The node's name.
    pub node: String,
    /// The image, with its digest if it is known.
    pub image: ImageReference,
}

/// How many images are pulled at once, and how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrepullLimits {
    /// At most so many on one node.
    pub per_node: usize,
    /// At most so many in the cluster.
    pub at_once: usize,
    /// A pull that takes longer has failed.
    pub time_limit: SignedDuration,
    /// How long after its first failure a pull is tried again. The wait doubles with each further failure.
    pub first_wait: SignedDuration,
    /// The longest wait.
    pub longest_wait: SignedDuration,
}

impl Default for PrepullLimits {
    fn default() -> Self {
        Self {
            per_node: 1,
            at_once: 10,
            time_limit: SignedDuration::from_mins(10),
            first_wait: SignedDuration::from_mins(1),
            longest_wait: SignedDuration::from_hours(1),
        }
    }
}

/// The pulls that run, and those that have failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pulls {
    /// Since when each pull runs.
    running: BTreeMap<Pull, Timestamp>,
    failed: BTreeMap<Pull, FailedPull>,
}

/// A pull that has failed, and is tried again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FailedPull {
    /// How often, without a success in between.
    pub attempts: u32,
    /// The last time.
    pub at: Timestamp,
    /// Why, the last time.
    pub reason: String,
}

/// What is done now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullPlan {
    /// The pulls that are started, the most important first.
    pub start: Vec<Pull>,
    /// The pulls that are ended, because the node has the image, is gone, or does not need it any more.
    pub end: Vec<Pull>,
    /// The pulls that are ended, because they take too long.
    pub too_long: Vec<Pull>,
}

/// The images that nodes lack, in the order in which they are wanted. A node on which no lab is placed needs none, and
/// an image that is wanted under several names is pulled once.
pub fn missing(wanted: &[WantedImage], inventory: &Inventory, nodes: &NodeImages) -> Vec<Pull> {
    let (mut known, mut missing) = (BTreeSet::new(), Vec::new());
    for WantedImage { reference, node_selector } in wanted {
        let Ok(image) = reference.parse::<ImageReference>() else { continue };
        let image = ImageReference { digest: inventory.digest(&image), ..image };
        for (name, node) in nodes.nodes() {
            let needs_it = node.excluded.is_none() && has_labels(node, node_selector) && !node.has(&image);
            let same = image.digest.map_or_else(|| image.tag().to_owned(), |digest| digest.to_string());
            if needs_it && known.insert((name.to_owned(), image.repository.clone(), same)) {
                missing.push(Pull { node: name.to_owned(), image: image.clone() });
            }
        }
    }
    missing
}

fn has_labels(node: &LabNode, selector: &BTreeMap<String, String>) -> bool {
    selector.iter().all(|(key, value)| node.labels.get(key) == Some(value))
}

impl Pulls {
    /// Decides what to do, given the images that nodes lack now.
    pub fn plan(&self, missing: &[Pull], limits: PrepullLimits, now: Timestamp) -> PullPlan {
        let still_missing: BTreeSet<&Pull> = missing.iter().collect();
        let mut plan = PullPlan::default();
        let mut on_node = BTreeMap::<&str, usize>::new();
        let mut going_on = 0;
        for (pull, since) in &self.running {
            if !still_missing.contains(pull) {
                plan.end.push(pull.clone());
            } else if now.duration_since(*since) > limits.time_limit {
                plan.too_long.push(pull.clone());
            } else {
                *on_node.entry(&pull.node).or_default() += 1;
                going_on += 1;
            }
        }
        for pull in missing {
            let here = on_node.entry(&pull.node).or_default();
            let may_start = *here < limits.per_node && going_on < limits.at_once;
            if may_start && !self.running.contains_key(pull) && !self.waits(pull, limits, now) {
                *here += 1;
                going_on += 1;
                plan.start.push(pull.clone());
            }
        }
        plan
    }

    /// True if the pull has failed so recently that it is not tried again yet.
    fn waits(&self, pull: &Pull, limits: PrepullLimits, now: Timestamp) -> bool {
        let Some(FailedPull { attempts, at, .. }) = self.failed.get(pull) else { return false };
        let doubled = 2_i32.saturating_pow(attempts.saturating_sub(1).min(20));
        let wait = limits.first_wait.checked_mul(doubled).unwrap_or(limits.longest_wait);
        now.duration_since(*at) < wait.min(limits.longest_wait)
    }

    /// Notes that a pull was started.
    pub fn started(&mut self, pull: Pull, now: Timestamp) {
        self.running.insert(pull, now);
    }

    /// Notes that a pull has ended well, or is not needed any more.
    pub fn ended(&mut self, pull: &Pull) {
        self.running.remove(pull);
        self.failed.remove(pull);
    }

    /// Notes that a pull has failed.
    pub fn has_failed(&mut self, pull: Pull, reason: String, now: Timestamp) {
        self.running.remove(&pull);
        let attempts = self.failed.get(&pull).map_or(1, |before| before.attempts.saturating_add(1));
        self.failed.insert(pull, FailedPull { attempts, at: now, reason });
    }

    /// The pulls that have failed and are tried again.
    pub fn failed(&self) -> impl Iterator<Item = (&Pull, &FailedPull)> {
        self.failed.iter()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Node;
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::images::NodeRules;

    fn node(labels: &serde_json::Value, cordoned: bool, images: &[&str]) -> LabNode {
        let names: Vec<_> = images.iter().map(|image| format!("docker.io/library/{image}")).collect();
        let node: Node = serde_json::from_value(json!({
            "metadata": {"labels": labels},
            "spec": {"unschedulable": cordoned},
            "status": {"images": [{"names": names}]},
        }))
        .unwrap();
        LabNode::observed(&node, &NodeRules::default())
    }

    fn wanted(images: &[&str]) -> Vec<WantedImage> {
        let image =
            |image: &&str| WantedImage { reference: (*image).to_owned(), node_selector: BTreeMap::new() };
        images.iter().map(image).collect()
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn shown(pulls: &[Pull]) -> Vec<String> {
        pulls.iter().map(|pull| format!("{} {}", pull.node, pull.image.tag())).collect()
    }

    #[test]
    fn nodes_pull_what_they_lack_and_what_is_wanted_first_comes_first() {
        let mut nodes = NodeImages::default();
        nodes.insert("a".into(), node(&json!({"pool": "gpu"}), false, &["lab:1"]));
        nodes.insert("b".into(), node(&json!({}), false, &[]));
        nodes.insert("c".into(), node(&json!({}), true, &[]));
        let mut wanted = wanted(&["lab:2", "lab:1", "docker.io/library/lab:2"]);
        wanted.push(WantedImage {
            reference: "cuda:1".into(),
            node_selector: BTreeMap::from([("pool".into(), "gpu".into())]),
        });
        let missing = missing(&wanted, &Inventory::default(), &nodes);
        assert_eq!(shown(&missing), ["a 2", "b 2", "b 1", "a 1"], "the last one is cuda's");
        let plan = Pulls::default().plan(&missing, PrepullLimits::default(), at(0));
        assert_eq!(shown(&plan.start), ["a 2", "b 2"], "one for each node");
        let one = PrepullLimits { at_once: 1, ..PrepullLimits::default() };
        assert_eq!(shown(&Pulls::default().plan(&missing, one, at(0)).start), ["a 2"]);
    }

    #[test]
    fn pulls_end_when_they_are_not_needed_or_take_too_long() {
        let pull = |node: &str| Pull { node: node.to_owned(), image: "lab:1".parse().unwrap() };
        let mut pulls = Pulls::default();
        pulls.started(pull("gone"), at(0));
        pulls.started(pull("slow"), at(0));
        pulls.started(pull("new"), at(500));
        let missing = [pull("slow"), pull("new")];
        let plan = pulls.plan(&missing, PrepullLimits::default(), at(601));
        assert_eq!((plan.end, plan.too_long, plan.start), (vec![pull("gone")], vec![pull("slow")], vec![]));
    }

    #[test]
    fn a_pull_that_fails_is_tried_again_after_longer_and_longer_waits() {
        let pull = Pull { node: "a".into(), image: "lab:1".parse().unwrap() };
        let (missing, limits) = ([pull.clone()], PrepullLimits::default());
        let mut pulls = Pulls::default();
        for (failed_at, still_waits, again) in [(0, 59, 60), (100, 219, 220), (1000, 1239, 1240)] {
            pulls.has_failed(pull.clone(), "no space left on device".into(), at(failed_at));
            assert!(pulls.plan(&missing, limits, at(still_waits)).start.is_empty());
            assert_eq!(pulls.plan(&missing, limits, at(again)).start.len(), 1);
        }
        for _ in 0..100 {
            pulls.has_failed(pull.clone(), "no".into(), at(0));
        }
        assert_eq!(pulls.plan(&missing, limits, at(3600)).start.len(), 1, "at most an hour");
        pulls.ended(&pull);
        assert_eq!(pulls.failed().count(), 0);
    }

    proptest! {
        /// Whatever nodes have and however pulls end, the limits hold, and at the end every node has everything.
        #[test]
        fn every_node_gets_every_image_within_the_limits(
            has in prop::collection::vec(prop::collection::btree_set(0..4_usize, 0..4), 1..6),
            per_node in 1..3_usize,
            at_once in 1..4_usize,
            fails in prop::collection::vec(any::<bool>(), 0..20),
        ) {
            let images = ["lab:0", "lab:1", "lab:2", "lab:3"];
            let limits = PrepullLimits { per_node, at_once, ..PrepullLimits::default() };
            let (wanted, mut have, mut fails) = (wanted(&images), has, fails.into_iter());
            let mut pulls = Pulls::default();
            for round in 0..100 {
                let mut nodes = NodeImages::default();
                for (number, has) in have.iter().enumerate() {
                    let present: Vec<_> = has.iter().map(|image| images[*image]).collect();
                    nodes.insert(format!("node-{number}"), node(&json!({}), false, &present));
                }
                let missing = missing(&wanted, &Inventory::default(), &nodes);
                if missing.is_empty() {
                    return Ok(());
                }
                let now = at(round * 4000);
                let plan = pulls.plan(&missing, limits, now);
                prop_assert!(!plan.start.is_empty() && plan.start.len() <= at_once);
                for pull in plan.start {
                    pulls.started(pull, now);
                }
                for number in 0..have.len() {
                    let name = format!("node-{number}");
                    prop_assert!(pulls.running.keys().filter(|pull| pull.node == name).count() <= per_node);
                }
                for pull in pulls.running.keys().cloned().collect::<Vec<_>>() {
                    if fails.next().unwrap_or_default() {
                        pulls.has_failed(pull, "no".to_owned(), now);
                        continue;
                    }
                    let number: usize = pull.node.trim_start_matches("node-").parse().unwrap();
                    have[number].insert(pull.image.tag().parse().unwrap());
                    pulls.ended(&pull);
                }
            }
            prop_assert!(false, "some image is still missing");
        }
    }
}

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Node, Pod};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;
use crate::images::{Inventory, LabNode, NodeImages, NodeRules, WantedImage};
use crate::names::LabelValue;
use crate::values::digest::Digest;

const LIMITS: PrepullLimits =
    PrepullLimits { per_node: 1, at_once: 10, time_limit: SignedDuration::from_mins(10), hours: Vec::new() };

fn node(labels: &Value, cordoned: bool, images: &[&str]) -> LabNode {
    let names: Vec<_> = images.iter().map(|image| format!("docker.io/library/{image}")).collect();
    let node: Node = serde_json::from_value(json!({
        "metadata": {"labels": labels, "creationTimestamp": "1970-01-01T00:00:00Z"},
        "spec": {"unschedulable": cordoned},
        "status": {"images": [{"names": names}]},
    }))
    .unwrap();
    LabNode::observed(&node, &NodeRules::default())
}

fn nodes(list: &[(&str, &[&str])]) -> NodeImages {
    let mut nodes = NodeImages::default();
    for (name, images) in list {
        nodes.insert((*name).to_owned(), node(&json!({}), false, images));
    }
    nodes
}

fn wanted(images: &[&str]) -> Vec<WantedImage> {
    let image = |image: &&str| WantedImage { reference: (*image).to_owned(), node_selector: BTreeMap::new() };
    images.iter().map(image).collect()
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn pull(node: &str, image: &str) -> Pull {
    Pull { node: node.to_owned(), image: image.parse().unwrap() }
}

fn pod(pull: &Pull, since: i64, state: PullState) -> PullPod {
    PullPod {
        name: format!("{} {}", pull.node, pull.image),
        uid: String::new(),
        pull: pull.clone(),
        since: at(since),
        state,
        is_being_deleted: false,
    }
}

fn shown(pulls: &[Pull]) -> Vec<String> {
    pulls.iter().map(|pull| format!("{} {}", pull.node, pull.image.tag())).collect()
}

fn needs(wanted: &[WantedImage], nodes: &NodeImages) -> Needs {
    Needs::from_wanted(wanted, &Inventory::default(), nodes, &PullHistory::default(), at(0))
}

/// Returns the pulls that begin if none is under way and none has ended.
fn begun(missing: &[Pull], nodes: &NodeImages, limits: &PrepullLimits, second: i64) -> Vec<String> {
    shown(&plan(missing, &[], &PullHistory::default(), nodes, limits, at(second)).begin)
}

#[test]
fn nodes_pull_what_they_lack_and_what_is_wanted_first_comes_first() {
    let mut nodes = NodeImages::default();
    nodes.insert("a".into(), node(&json!({"pool": "gpu"}), false, &["lab:1"]));
    nodes.insert("b".into(), node(&json!({}), false, &[]));
    nodes.insert("cordoned".into(), node(&json!({}), true, &[]));
    let mut wanted = wanted(&["lab:2", "lab:1", "docker.io/library/lab:2"]);
    wanted.push(WantedImage {
        reference: "lab:cuda".into(),
        node_selector: BTreeMap::from([("pool".into(), "gpu".into())]),
    });
    let needs = needs(&wanted, &nodes);
    assert_eq!(shown(&needs.missing), ["a 2", "b 2", "b 1", "a cuda"]);
    let counts: Vec<_> = needs.images.iter().map(|image| (image.nodes, image.nodes_with)).collect();
    assert_eq!(counts, [(2, 0), (2, 1), (1, 0)], "lab:2 is one image under two names");
    assert_eq!(begun(&needs.missing, &nodes, &LIMITS, 0), ["a 2", "b 2"], "one for each node");
    let one = PrepullLimits { at_once: 1, ..LIMITS };
    assert_eq!(begun(&needs.missing, &nodes, &one, 0), ["a 2"]);
}

#[test]
fn two_names_of_one_digest_are_pulled_once_on_each_node() {
    let digest = Digest::sha256(b"image");
    let nodes = nodes(&[("a", &[])]);
    let mut wanted = wanted(&[&format!("lab:old@{digest}"), &format!("lab:new@{digest}")]);
    wanted.push(WantedImage {
        reference: format!("lab@{digest}"),
        node_selector: BTreeMap::from([("no".into(), "node".into())]),
    });
    let needs = needs(&wanted, &nodes);
    assert_eq!(needs.missing, [pull("a", &format!("lab@{digest}"))]);
    assert_eq!(needs.images.len(), 2, "the second name adds nothing, other nodes do");
}

#[test]
fn a_pod_is_removed_when_its_pull_has_ended_or_is_not_needed() {
    let nodes = nodes(&[("a", &[]), ("b", &[])]);
    let on = |node: &str| pull(node, "lab:1");
    let missing = [on("a"), on("b")];
    for (second, observed, expected) in [
        (600, pod(&on("a"), 0, PullState::Pulling), None),
        (
            601,
            pod(&on("a"), 0, PullState::Pulling),
            Some("Failed(\"it was not done after 10m (`images.prepull.time_limit`)\")"),
        ),
        (0, pod(&on("a"), 0, PullState::Pulled), Some("Pulled")),
        (0, pod(&on("a"), 0, PullState::Failed("no".into())), Some("Failed(\"no\")")),
        (0, pod(&on("gone"), 0, PullState::Pulling), Some("NotNeeded")),
        (0, pod(&on("gone"), 0, PullState::Failed("no".into())), Some("NotNeeded")),
        (0, pod(&pull("a", "lab:other"), 0, PullState::Pulled), Some("Pulled")),
        (601, PullPod { is_being_deleted: true, ..pod(&on("a"), 0, PullState::Pulled) }, None),
    ] {
        let node = observed.pull.node.clone();
        let plan = plan(&missing, &[observed], &PullHistory::default(), &nodes, &LIMITS, at(second));
        let ending = plan.remove.first().map(|(_, ending)| format!("{ending:?}"));
        assert_eq!(ending.as_deref(), expected);
        let others = ["a", "b"].into_iter().filter(|other| *other != node);
        let others: Vec<String> = others.map(|node| format!("{node} 1")).collect();
        assert_eq!(shown(&plan.begin), others, "a pod counts on its node until it is gone");
    }
}

#[test]
fn pulls_begin_in_their_hours_and_on_new_nodes_at_any_time() {
    let mut nodes = nodes(&[("old", &[])]);
    let mut new = node(&json!({}), false, &[]);
    new.created = Some(at(40_000));
    nodes.insert("new".into(), new);
    let missing = [pull("old", "lab:1"), pull("new", "lab:1")];
    let at_night = PrepullLimits { hours: vec!["03:00-04:00".parse().unwrap()], ..LIMITS };
    assert_eq!(begun(&missing, &nodes, &at_night, 3 * 3600), ["old 1", "new 1"]);
    assert_eq!(begun(&missing, &nodes, &at_night, 41_000), ["new 1"]);
    assert_eq!(begun(&missing, &nodes, &at_night, 45_000), [""; 0], "it is not new any more");
}

#[test]
fn a_pull_that_fails_is_tried_again_after_longer_and_longer_waits() {
    let nodes = nodes(&[("a", &[])]);
    let missing = [pull("a", "lab:1")];
    let mut history = PullHistory::default();
    let begins = |history: &PullHistory, second| {
        plan(&missing, &[], history, &nodes, &LIMITS, at(second)).begin.len() == 1
    };
    for (failed_at, still_waits, again) in [(0, 59, 60), (100, 219, 220), (1000, 1239, 1240)] {
        history.failed(missing[0].clone(), "no space left on device".into(), at(failed_at));
        assert!(!begins(&history, still_waits) && begins(&history, again));
    }
    let failed: Vec<_> = history.failures().map(|failed| (failed.attempts, failed.again_at)).collect();
    assert_eq!(failed, [(3, at(1240))]);
    for _ in 0..100 {
        history.failed(missing[0].clone(), "no".into(), at(0));
    }
    assert!(!begins(&history, 3599) && begins(&history, 3600), "at most an hour");
    history.pulled(missing[0].clone(), at(0));
    assert_eq!(history.failures().count(), 0);
}

#[test]
fn an_image_that_a_node_does_not_list_is_not_pulled_again_and_again() {
    let (without, with) = (nodes(&[("a", &[])]), nodes(&[("a", &["lab:1"])]));
    let needed = needs(&wanted(&["lab:1"]), &without);
    let mut history = PullHistory::default();
    let begins = |history: &PullHistory, second| {
        plan(&needed.missing, &[], history, &without, &LIMITS, at(second)).begin.len() == 1
    };
    history.pulled(needed.missing[0].clone(), at(0));
    history.observe(needed.images(), &without, at(10));
    assert!(!begins(&history, 20_000) && begins(&history, 21_600), "six hours later it is looked at again");
    let taken = |second| {
        Needs::from_wanted(&wanted(&["lab:1"]), &Inventory::default(), &without, &history, at(second))
    };
    assert_eq!((taken(20_000).images[0].nodes_with, taken(21_600).images[0].nodes_with), (1, 0));
    // The node has listed the image, and then removed it: the next pull waits as after a failure.
    history.observe(needed.images(), &with, at(100));
    history.observe(needed.images(), &without, at(200));
    assert!(!begins(&history, 259) && begins(&history, 260));
    let failed = history.failures().next().unwrap();
    assert!(failed.reason.contains("has removed the image"), "{failed:?}");
    history.pulled(needed.missing[0].clone(), at(300));
    history.observe(needed.images(), &with, at(400));
    history.observe(needed.images(), &without, at(500));
    assert!(!begins(&history, 619) && begins(&history, 620), "twice in a row waits longer");
    // Earlier failures of an image that was kept for a day are not counted.
    history.pulled(needed.missing[0].clone(), at(1000));
    history.observe(needed.images(), &with, at(1100));
    history.observe(needed.images(), &with, at(100_000));
    history.observe(needed.images(), &without, at(100_000));
    assert!(begins(&history, 100_060));
}

#[test]
fn what_nobody_needs_any_more_is_forgotten() {
    let here = nodes(&[("a", &[])]);
    let needed = needs(&wanted(&["lab:1"]), &here);
    let mut history = PullHistory::default();
    history.failed(pull("a", "lab:1"), "no".into(), at(0));
    history.failed(pull("gone", "lab:1"), "no".into(), at(0));
    history.failed(pull("a", "lab:old"), "no".into(), at(0));
    history.observe(needed.images(), &here, at(1));
    assert_eq!(history.failures().map(|failed| failed.pull).collect::<Vec<_>>(), needed.missing);
    let mut replaced = node(&json!({}), false, &[]);
    replaced.created = Some(at(1));
    let mut again = NodeImages::default();
    again.insert("a".into(), replaced);
    let mut of_the_old_node = history.clone();
    of_the_old_node.observe(needed.images(), &again, at(2));
    assert_eq!(of_the_old_node, PullHistory::default());
    history.observe(needed.images(), &nodes(&[("a", &["lab:1"])]), at(2));
    assert_eq!(history, PullHistory::default(), "a lab has pulled it");
}

fn instance() -> LabelValue {
    LabelValue::parse("wasmspawner").unwrap()
}

fn template() -> PullPodTemplate {
    PullPodTemplate {
        instance: instance(),
        owner: None,
        pull_secret: Some("registry".into()),
        time_limit: LIMITS.time_limit,
    }
}

/// Returns the pod as the API server returns it.
fn created(pull: &Pull, status: &Value) -> Pod {
    let mut pod = template().pod(pull);
    pod.metadata.uid = Some("uid".into());
    pod.metadata.creation_timestamp = serde_json::from_value(json!("1970-01-01T00:00:07Z")).unwrap();
    pod.status = serde_json::from_value(status.clone()).unwrap();
    pod
}

#[test]
fn a_pod_is_recognized_by_its_name_and_not_by_its_label_alone() {
    let wanted = pull("a", "quay.io/lab:1");
    let observed = PullPod::observed(&created(&wanted, &Value::Null), &instance()).unwrap();
    assert_eq!((observed.pull, observed.since, observed.state), (wanted.clone(), at(7), PullState::Pulling));
    let mut of_another_node = created(&wanted, &Value::Null);
    of_another_node.spec.as_mut().unwrap().node_name = Some("b".into());
    assert_eq!(PullPod::observed(&of_another_node, &instance()), None);
    let mut of_a_mirror = created(&wanted, &Value::Null);
    of_a_mirror.spec.as_mut().unwrap().containers[0].image = Some("mirror/lab:1".into());
    let observed = PullPod::observed(&of_a_mirror, &instance()).unwrap();
    assert_eq!(observed.pull, wanted, "a webhook may name a mirror");
    let mut of_somebody = created(&wanted, &Value::Null);
    of_somebody.metadata.name = Some("hub".into());
    assert_eq!(PullPod::observed(&of_somebody, &instance()), None);
    let other = LabelValue::parse("other").unwrap();
    assert_eq!(PullPod::observed(&created(&wanted, &Value::Null), &other), None);
}

#[test]
fn the_state_of_a_pod_says_whether_the_node_has_the_image() {
    let container = |state: Value| {
        json!({"phase": "Pending", "containerStatuses": [{"name": "pull", "image": "",
        "imageID": "", "ready": false, "restartCount": 0, "state": state}]})
    };
    let waiting =
        |reason: &str, message: &str| container(json!({"waiting": {"reason": reason, "message": message}}));
    let failed = |reason: &str| PullState::Failed(reason.to_owned());
    let of_evicted = |state: Value| {
        let mut status = container(state);
        status["phase"] = "Failed".into();
        status["reason"] = "Evicted".into();
        status["message"] = "the node was low on memory".into();
        status
    };
    for (status, expected) in [
        (Value::Null, PullState::Pulling),
        (json!({"phase": "Pending"}), PullState::Pulling),
        (waiting("ContainerCreating", ""), PullState::Pulling),
        (waiting("ErrImagePull", "rpc error:\n not found"), failed("ErrImagePull: rpc error:  not found")),
        (waiting("ImagePullBackOff", ""), failed("ImagePullBackOff")),
        (waiting("InvalidImageName", ""), failed("InvalidImageName")),
        (waiting("RunContainerError", "exec: \"true\": not found"), PullState::Pulled),
        (waiting("CreateContainerError", ""), PullState::Pulled),
        (container(json!({"running": {}})), PullState::Pulled),
        (container(json!({"terminated": {"exitCode": 128, "reason": "StartError"}})), PullState::Pulled),
        (json!({"phase": "Succeeded"}), PullState::Pulled),
        (
            of_evicted(json!({"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown"}})),
            failed("Evicted: the node was low on memory"),
        ),
        (
            json!({"phase": "Failed", "reason": "OutOfpods", "message": "Node didn't have enough resource: pods"}),
            failed("OutOfpods: Node didn't have enough resource: pods"),
        ),
        (json!({"phase": "Failed", "reason": "DeadlineExceeded"}), failed("DeadlineExceeded")),
    ] {
        let observed = PullPod::observed(&created(&pull("a", "lab:1"), &status), &instance()).unwrap();
        assert_eq!(observed.state, expected, "{status}");
    }
    let long = waiting("ErrImagePull", &"x".repeat(10_000));
    let observed = PullPod::observed(&created(&pull("a", "lab:1"), &long), &instance()).unwrap();
    assert!(
        matches!(observed.state, PullState::Failed(reason) if reason.len() < 320),
        "a message has a limit"
    );
}

proptest! {
    /// For all images on the nodes and all results of pulls, the limits hold, no pod stays, and in the end every node
    /// has every image.
    #[test]
    fn every_node_gets_every_image_within_the_limits(
        has in prop::collection::vec(prop::collection::btree_set(0..4_usize, 0..4), 1..6),
        per_node in 1..3_usize,
        at_once in 1..4_usize,
        lists in any::<bool>(),
        endings in prop::collection::vec(0..4_u8, 0..30),
    ) {
        const IMAGES: [&str; 4] = ["lab:0", "lab:1", "lab:2", "lab:3"];
        let limits = PrepullLimits { per_node, at_once, ..LIMITS };
        let (mut listed, mut endings) = (has.clone(), endings.into_iter());
        let mut pulled: Vec<BTreeSet<usize>> = has;
        let (mut history, mut pods) = (PullHistory::default(), Vec::<PullPod>::new());
        for round in 0..100 {
            let mut nodes = NodeImages::default();
            for (number, has) in listed.iter().enumerate() {
                let present: Vec<_> = has.iter().map(|image| IMAGES[*image]).collect();
                nodes.insert(format!("node-{number}"), node(&json!({}), false, &present));
            }
            let now = at(round * 4000);
            let needs = needs(&wanted(&IMAGES), &nodes);
            history.observe(needs.images(), &nodes, now);
            let plan = plan(&needs.missing, &pods, &history, &nodes, &limits, now);
            for (gone, ending) in plan.remove {
                pods.retain(|pod| *pod != gone);
                match ending {
                    Ending::Pulled => history.pulled(gone.pull, now),
                    Ending::Failed(reason) => history.failed(gone.pull, reason, now),
                    Ending::NotNeeded => {}
                }
            }
            for pull in plan.begin {
                prop_assert!(pods.iter().all(|pod| pod.pull != pull), "no image is pulled twice at once");
                pods.push(pod(&pull, round * 4000, PullState::Pulling));
            }
            prop_assert!(pods.len() <= at_once);
            for number in 0..listed.len() {
                let name = format!("node-{number}");
                prop_assert!(pods.iter().filter(|pod| pod.pull.node == name).count() <= per_node);
            }
            // A node that does not list its images gets another pull after six hours.
            if (pods.is_empty() || !lists) && pulled.iter().all(|has| has.len() == IMAGES.len()) {
                return Ok(());
            }
            for pod in &mut pods {
                match endings.next().unwrap_or(3) {
                    0 => pod.state = PullState::Failed("no".into()),
                    1 => {}
                    _ => {
                        let number: usize = pod.pull.node.trim_start_matches("node-").parse().unwrap();
                        let image = pod.pull.image.tag().parse().unwrap();
                        pulled[number].insert(image);
                        if lists {
                            listed[number].insert(image);
                        }
                        pod.state = PullState::Pulled;
                    }
                }
            }
        }
        prop_assert!(false, "some image is still missing, or a pod has stayed");
    }
}

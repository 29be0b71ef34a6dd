//! The answer about images that nodes pull in advance.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::images::{FailedPull, LabNode, NeededImage, NodeImages, PullPod};

use super::images::NodeReport;
use wasmspawner_spawner::prepull::PrepullReport;

/// The limit on the number of failed pulls in the answer; `failed_count` is the total.
const MAX_FAILED: usize = 1000;

/// The images that nodes pull before somebody asks for them.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct Prepulls {
    /// False if the configuration has no `images.prepull`.
    enabled: bool,
    /// Why nothing can be pulled now; `null` if all is well.
    problem: Option<String>,
    /// What nodes are to have, the most important first.
    images: Vec<WantedReport>,
    /// The pulls that run.
    running: Vec<RunningReport>,
    /// The pulls that have failed and are tried again, at most a thousand.
    failed: Vec<FailedReport>,
    /// How many pulls have failed and are tried again.
    failed_count: usize,
    /// The nodes that pull nothing, because no lab is placed there.
    excluded_nodes: Vec<NodeReport>,
}

/// An image that nodes are to have.
#[derive(Debug, Serialize, ToSchema)]
struct WantedReport {
    /// The image as the policy or the configuration names it.
    reference: String,
    /// `sha256:...`; `null` if it is not known, so that nodes pull what the tag means.
    digest: Option<String>,
    /// Only nodes with these labels are to have it.
    node_selector: BTreeMap<String, String>,
    /// How many nodes are to have it: those with the labels on which labs can be placed.
    nodes: usize,
    /// How many of these have it.
    nodes_with: usize,
}

/// A pull that runs.
#[derive(Debug, Serialize, ToSchema)]
struct RunningReport {
    node: String,
    image: String,
    /// The pod that pulls, in the namespace of the service.
    pod: String,
    #[schema(format = DateTime)]
    since: String,
}

/// A pull that has failed and is tried again.
#[derive(Debug, Serialize, ToSchema)]
struct FailedReport {
    node: String,
    image: String,
    /// The last time, in the words of the node.
    reason: String,
    /// How often it has failed.
    attempts: u32,
    /// The last time.
    #[schema(format = DateTime)]
    at: String,
    /// When it is tried again at the earliest.
    #[schema(format = DateTime)]
    again_at: String,
}

impl Prepulls {
    pub(crate) fn new(report: &PrepullReport, nodes: &NodeImages) -> Self {
        let excluded = nodes.nodes().filter(|(_, node)| node.excluded.is_some());
        Self {
            enabled: true,
            problem: report.problem.clone(),
            images: report.images.iter().map(WantedReport::from).collect(),
            running: report.running.iter().map(RunningReport::from).collect(),
            failed: report.failed.iter().take(MAX_FAILED).map(FailedReport::from).collect(),
            failed_count: report.failed.len(),
            excluded_nodes: excluded.map(|node: (&str, &LabNode)| NodeReport::from(node)).collect(),
        }
    }
}

impl From<&NeededImage> for WantedReport {
    fn from(needed: &NeededImage) -> Self {
        Self {
            reference: needed.reference.clone(),
            digest: needed.image.digest.map(|digest| digest.to_string()),
            node_selector: needed.node_selector.clone(),
            nodes: needed.nodes,
            nodes_with: needed.nodes_with,
        }
    }
}

impl From<&PullPod> for RunningReport {
    fn from(pod: &PullPod) -> Self {
        Self {
            node: pod.pull.node.clone(),
            image: pod.pull.image.to_string(),
            pod: pod.name.clone(),
            since: pod.since.to_string(),
        }
    }
}

impl From<&FailedPull> for FailedReport {
    fn from(failed: &FailedPull) -> Self {
        Self {
            node: failed.pull.node.clone(),
            image: failed.pull.image.to_string(),
            reason: failed.reason.clone(),
            attempts: failed.attempts,
            at: failed.at.to_string(),
            again_at: failed.again_at.to_string(),
        }
    }
}

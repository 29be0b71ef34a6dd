use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Node, Taint};

use super::{ImageReference, Repository};
use crate::values::digest::Digest;

/// The nodes on which labs can run, and the images that they have. A clone shares the data of the nodes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeImages {
    nodes: BTreeMap<String, Arc<LabNode>>,
    /// The number of nodes on which labs can be placed.
    eligible: usize,
    /// The number of these nodes that have each image, kept here so that a lookup does not visit every node.
    counts: BTreeMap<Repository, Counts>,
}

/// The number of nodes that have the images of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    /// For each digest, the number of nodes with the image, and the image's size on a node's disk in bytes.
    digests: BTreeMap<Digest, (usize, u64)>,
    /// For each tag, the number of nodes with any image of the tag.
    tags: BTreeMap<String, usize>,
}

/// A node, and the images that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabNode {
    /// The reason why no lab can be placed there; absent if labs can be.
    pub excluded: Option<String>,
    /// The labels of the node.
    pub labels: BTreeMap<String, String>,
    /// The time at which the node joined the cluster.
    pub created: Option<Timestamp>,
    images: BTreeMap<Repository, OnNode>,
}

/// The images of a repository on one node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct OnNode {
    /// The digests, with the size of each image on the node's disk in bytes.
    digests: BTreeMap<Digest, u64>,
    tags: BTreeSet<String>,
}

/// The rules that select the nodes for labs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRules {
    /// Labels that a node must have.
    pub selector: BTreeMap<String, String>,
    /// Keys of taints that labs tolerate.
    pub tolerated_taints: Vec<String>,
}

impl NodeRules {
    /// Returns the reason why no lab can be placed on a node; `None` if labs can be.
    fn excluded(&self, node: &Node) -> Option<String> {
        let labels = node.metadata.labels.clone().unwrap_or_default();
        if let Some((key, value)) = self.selector.iter().find(|(key, value)| labels.get(*key) != Some(*value))
        {
            return Some(format!("it does not have the label {key}={value}"));
        }
        let spec = node.spec.as_ref()?;
        if spec.unschedulable == Some(true) {
            return Some("it is cordoned".to_owned());
        }
        let keeps_off = |taint: &&Taint| {
            taint.effect != "PreferNoSchedule" && !self.tolerated_taints.contains(&taint.key)
        };
        let taint = spec.taints.iter().flatten().find(keeps_off)?;
        Some(format!("it has the taint {}:{}", taint.key, taint.effect))
    }
}

impl LabNode {
    /// Reads a node from its object in the API.
    pub fn observed(node: &Node, rules: &NodeRules) -> Self {
        let mut observed = Self {
            excluded: rules.excluded(node),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            created: node.metadata.creation_timestamp.as_ref().map(|time| time.0),
            ..Self::default()
        };
        let images = node.status.iter().flat_map(|status| status.images.iter().flatten());
        for image in images {
            let size = image.size_bytes.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
            for name in image.names.iter().flatten() {
                let Ok(ImageReference { repository, tag, digest }) = name.parse() else { continue };
                let images = observed.images.entry(repository).or_default();
                match digest {
                    Some(digest) => drop(images.digests.insert(digest, size)),
                    None => drop(images.tags.insert(tag.map_or("latest".into(), |tag| tag.to_string()))),
                }
            }
        }
        observed
    }

    /// Returns true if the node has the image: the image of the digest if that is known, and otherwise any of the tag.
    pub fn has(&self, image: &ImageReference) -> bool {
        self.images.get(&image.repository).is_some_and(|images| match &image.digest {
            Some(digest) => images.digests.contains_key(digest),
            None => images.tags.contains(image.tag()),
        })
    }
}

impl NodeImages {
    /// Adds a node, or replaces its earlier state.
    pub fn insert(&mut self, name: String, node: LabNode) {
        self.remove(&name);
        if node.excluded.is_none() {
            self.eligible += 1;
            for (repository, images) in &node.images {
                self.counts.entry(repository.clone()).or_default().add(images);
            }
        }
        self.nodes.insert(name, Arc::new(node));
    }

    /// Removes a node.
    pub fn remove(&mut self, name: &str) {
        let Some(node) = self.nodes.remove(name).filter(|node| node.excluded.is_none()) else { return };
        self.eligible -= 1;
        for (repository, images) in &node.images {
            if let Some(counts) = self.counts.get_mut(repository) {
                counts.subtract(images);
            }
        }
        self.counts.retain(|_, counts| !counts.digests.is_empty() || !counts.tags.is_empty());
    }

    /// Returns all nodes with their names, even those on which no lab can be placed.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &LabNode)> {
        self.nodes.iter().map(|(name, node)| (name.as_str(), node.as_ref()))
    }

    /// Returns the node of this name.
    pub fn node(&self, name: &str) -> Option<&LabNode> {
        self.nodes.get(name).map(AsRef::as_ref)
    }

    /// Returns the number of nodes on which labs can be placed.
    pub fn count(&self) -> usize {
        self.eligible
    }

    /// Counts the nodes for labs that have the image: the image of the digest if that is known, and otherwise any of
    /// the tag.
    pub fn with(&self, image: &ImageReference) -> usize {
        let counted = self.counts.get(&image.repository).and_then(|counts| match &image.digest {
            Some(digest) => counts.digests.get(digest).map(|(nodes, _)| *nodes),
            None => counts.tags.get(image.tag()).copied(),
        });
        counted.unwrap_or_default()
    }

    /// Returns the size of the image on a node's disk, in bytes.
    pub fn size(&self, repository: &Repository, digest: Digest) -> Option<u64> {
        self.counts.get(repository)?.digests.get(&digest).map(|(_, size)| *size)
    }
}

impl Counts {
    fn add(&mut self, images: &OnNode) {
        for (digest, size) in &images.digests {
            let (nodes, known) = self.digests.entry(*digest).or_default();
            (*nodes, *known) = (*nodes + 1, *size);
        }
        for tag in &images.tags {
            *self.tags.entry(tag.clone()).or_default() += 1;
        }
    }

    fn subtract(&mut self, images: &OnNode) {
        for digest in images.digests.keys() {
            self.digests.entry(*digest).and_modify(|(nodes, _)| *nodes -= 1);
        }
        for tag in &images.tags {
            self.tags.entry(tag.clone()).and_modify(|nodes| *nodes -= 1);
        }
        self.digests.retain(|_, (nodes, _)| *nodes > 0);
        self.tags.retain(|_, nodes| *nodes > 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(yaml: &str) -> Node {
        serde_saphyr::from_str(yaml).unwrap()
    }

    #[test]
    fn the_reason_says_why_no_lab_is_placed_on_a_node() {
        let rules = NodeRules {
            selector: BTreeMap::from([("pool".into(), "labs".into())]),
            tolerated_taints: vec!["hub.jupyter.org/dedicated".into()],
        };
        for (yaml, expected) in [
            ("{metadata: {labels: {pool: labs}}}", None),
            ("{metadata: {labels: {pool: core}}}", Some("it does not have the label pool=labs")),
            ("{metadata: {labels: {pool: labs}}, spec: {unschedulable: true}}", Some("it is cordoned")),
            (
                "{metadata: {labels: {pool: labs}}, spec: {taints: [{key: gpu, effect: NoSchedule}]}}",
                Some("it has the taint gpu:NoSchedule"),
            ),
            (
                "{metadata: {labels: {pool: labs}}, spec: {taints: [{key: hub.jupyter.org/dedicated, effect: NoSchedule}, {key: x, effect: PreferNoSchedule}]}}",
                None,
            ),
        ] {
            assert_eq!(LabNode::observed(&node(yaml), &rules).excluded.as_deref(), expected, "{yaml}");
        }
    }

    #[test]
    fn a_node_has_an_image_by_its_digest_under_each_of_its_names() {
        let (old, new) = (Digest::sha256(b"old"), Digest::sha256(b"new"));
        let yaml = format!(
            "{{status: {{images: [{{names: ['docker.io/library/lab@{old}', 'docker.io/library/lab:1.0'], sizeBytes: 7}}, {{names: ['<none>@<none>']}}, {{}}]}}}}"
        );
        let mut nodes = NodeImages::default();
        nodes.insert("a".into(), LabNode::observed(&node(&yaml), &NodeRules::default()));
        nodes.insert("b".into(), LabNode::observed(&node("{}"), &NodeRules::default()));
        let excluded = LabNode {
            excluded: Some("cordoned".into()),
            ..LabNode::observed(&node(&yaml), &NodeRules::default())
        };
        nodes.insert("c".into(), excluded);
        let with = |image: &str| nodes.with(&image.parse().unwrap());
        assert_eq!(nodes.count(), 2);
        assert_eq!(with("lab:1.0"), 1);
        assert_eq!(with(&format!("lab@{old}")), 1);
        assert_eq!(with(&format!("lab:1.0@{new}")), 0, "the tag means another image now");
        assert_eq!(with("quay.io/lab:1.0"), 0);
        assert_eq!(nodes.size(&"lab".parse().unwrap(), old), Some(7));
    }
    #[test]
    fn nothing_is_left_of_nodes_that_are_gone() {
        let image = Digest::sha256(b"image");
        let yaml = format!(
            "{{status: {{images: [{{names: ['quay.io/lab@{image}', 'quay.io/lab:1.0'], sizeBytes: 7}}]}}}}"
        );
        let observed = || LabNode::observed(&node(&yaml), &NodeRules::default());
        let mut nodes = NodeImages::default();
        nodes.insert("a".into(), observed());
        nodes.insert("a".into(), observed());
        nodes.insert("b".into(), observed());
        assert_eq!((nodes.count(), nodes.with(&"quay.io/lab:1.0".parse().unwrap())), (2, 2));
        nodes.insert("b".into(), LabNode { excluded: Some("cordoned".into()), ..observed() });
        assert_eq!((nodes.count(), nodes.with(&format!("quay.io/lab@{image}").parse().unwrap())), (1, 1));
        for name in ["a", "b", "c"] {
            nodes.remove(name);
        }
        assert_eq!(nodes, NodeImages::default());
    }
}

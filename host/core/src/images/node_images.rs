use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{Node, Taint};

use super::{ImageReference, Repository};
use crate::digest::Digest;

/// The nodes on which labs can run, and the images that they have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeImages(BTreeMap<String, LabNode>);

/// A node, and the images that it has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabNode {
    /// Why no lab can be placed there; absent if labs can.
    pub excluded: Option<String>,
    /// The labels of the node.
    pub labels: BTreeMap<String, String>,
    /// The images by repository and digest, with their size on the node's disk in bytes.
    digests: BTreeMap<(Repository, Digest), u64>,
    /// The images by repository and tag.
    tags: BTreeSet<(Repository, String)>,
}

/// The nodes that are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NodeRules {
    /// Labels that a node must have.
    pub selector: BTreeMap<String, String>,
    /// Keys of taints that labs tolerate.
    pub tolerated_taints: Vec<String>,
}

impl NodeRules {
    /// Why no lab can be placed on a node; `None` if labs can.
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
    /// A node, by what the API server says about it.
    pub fn observed(node: &Node, rules: &NodeRules) -> Self {
        let mut observed = Self {
            excluded: rules.excluded(node),
            labels: node.metadata.labels.clone().unwrap_or_default(),
            ..Self::default()
        };
        let images = node.status.iter().flat_map(|status| status.images.iter().flatten());
        for image in images {
            let size = image.size_bytes.and_then(|size| u64::try_from(size).ok()).unwrap_or_default();
            for name in image.names.iter().flatten() {
                let Ok(ImageReference { repository, tag, digest }) = name.parse() else { continue };
                match digest {
                    Some(digest) => drop(observed.digests.insert((repository, digest), size)),
                    None => drop(
                        observed
                            .tags
                            .insert((repository, tag.map_or("latest".into(), |tag| tag.to_string()))),
                    ),
                }
            }
        }
        observed
    }

    /// True if the node has the image: that of the digest if it is known, and else any of the tag.
    pub fn has(&self, image: &ImageReference) -> bool {
        match image.digest {
            Some(digest) => self.digests.contains_key(&(image.repository.clone(), digest)),
            None => self.tags.contains(&(image.repository.clone(), image.tag().to_owned())),
        }
    }
}

impl NodeImages {
    /// Notes what a node is like now.
    pub fn insert(&mut self, name: String, node: LabNode) {
        self.0.insert(name, node);
    }

    /// Forgets a node.
    pub fn remove(&mut self, name: &str) {
        self.0.remove(name);
    }

    /// All nodes with their names, also those on which no lab can be placed.
    pub fn nodes(&self) -> impl Iterator<Item = (&str, &LabNode)> {
        self.0.iter().map(|(name, node)| (name.as_str(), node))
    }

    /// The nodes on which labs can be placed.
    fn eligible(&self) -> impl Iterator<Item = &LabNode> {
        self.0.values().filter(|node| node.excluded.is_none())
    }

    /// How many nodes there are on which labs can be placed.
    pub fn count(&self) -> usize {
        self.eligible().count()
    }

    /// How many of these nodes have the image.
    pub fn with(&self, image: &ImageReference) -> usize {
        self.eligible().filter(|node| node.has(image)).count()
    }

    /// What the image needs on a node's disk, in bytes.
    pub fn size(&self, repository: &Repository, digest: Digest) -> Option<u64> {
        self.0.values().find_map(|node| node.digests.get(&(repository.clone(), digest)).copied())
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
        let (old, new) = (Digest::of(b"old"), Digest::of(b"new"));
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
}

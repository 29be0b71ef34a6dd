//! `images`: what the service knows about the images of labs.

use std::collections::BTreeMap;

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidSetting, PrepullConfig, check_span};
use crate::images::{NodeRules, Repository, Tag};
use crate::values::glob::Glob;

/// The shortest time between two refreshes.
const OFTEN: SignedDuration = SignedDuration::from_secs(10);

/// What the service knows about the images of labs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImagesConfig {
    /// The repositories whose images are known: they are in the menu, and labs that use them are pinned to the digest
    /// that the tag had when the registry was last asked about it. They are read as `registries` says.
    pub repositories: Vec<ImageRepository>,
    /// The nodes on which labs are placed, whose images are followed so that the menu shows first what every node has.
    /// Without it, nodes are not watched. `{}` means all nodes. It needs the permissions of
    /// `deploy/permissions/nodes.yaml`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodes: Option<ImageNodes>,
    /// Images that nodes pull before somebody asks for them. `{}` means those that policies want, and else `lab.image`;
    /// without it, nothing is pulled in advance.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepull: Option<PrepullConfig>,
    /// How often the registries are asked for new tags, and whether tags have moved; at least 10 seconds.
    #[serde(deserialize_with = "crate::config::span::parse")]
    #[schemars(with = "String")]
    pub refresh_every: SignedDuration,
    /// What happens to a lab whose image has no digest that is known.
    pub unpinned: UnpinnedImages,
}

/// A repository whose images are known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImageRepository {
    /// The repository, such as `registry.example.org/site/lab`.
    pub name: Repository,
    /// Only these tags are read; `*` stands for any characters, and `?` for one. Without it, all tags are read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Glob>,
    /// Whether users choose from these images where no policy makes the menu. Without that, they are only pinned.
    #[serde(default = "yes")]
    pub menu: bool,
}

fn yes() -> bool {
    true
}

/// The nodes on which labs are placed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ImageNodes {
    /// Labels that these nodes have.
    pub selector: BTreeMap<String, String>,
    /// Keys of taints that labs tolerate. Nodes with other taints do not count, except for `PreferNoSchedule`.
    pub tolerated_taints: Vec<String>,
}

/// What happens to a lab whose image has no digest that is known.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UnpinnedImages {
    /// It starts with the image that the tag means on its node.
    #[default]
    Allow,
    /// It does not start.
    Refuse,
}

impl Default for ImagesConfig {
    fn default() -> Self {
        Self {
            repositories: Vec::new(),
            nodes: None,
            prepull: None,
            refresh_every: SignedDuration::from_mins(5),
            unpinned: UnpinnedImages::default(),
        }
    }
}

impl ImageRepository {
    /// True if this tag is read.
    pub fn has(&self, tag: &Tag) -> bool {
        self.tags.is_empty() || self.tags.iter().any(|glob| glob.matches(tag.as_str()))
    }
}

impl ImagesConfig {
    /// The repositories from which users choose where no policy makes the menu.
    pub fn offered(&self) -> impl Iterator<Item = &Repository> {
        self.repositories.iter().filter(|repository| repository.menu).map(|repository| &repository.name)
    }

    /// Which nodes are followed; `None` if none is.
    pub fn node_rules(&self) -> Option<NodeRules> {
        self.nodes
            .clone()
            .map(|ImageNodes { selector, tolerated_taints }| NodeRules { selector, tolerated_taints })
    }

    pub(super) fn check(&self) -> Vec<InvalidSetting> {
        let names: Vec<_> = self.repositories.iter().map(|repository| &repository.name).collect();
        let twice = (1..names.len()).find(|at| names[..*at].contains(&names[*at])).map(|at| {
            InvalidSetting::new(
                format!("images.repositories[{at}].name"),
                format!("{} is listed twice", names[at]),
            )
        });
        let often = (self.refresh_every < OFTEN && self.refresh_every.is_positive()).then(|| {
            let message = format!("{:#} is too often; write at least {OFTEN:#}", self.refresh_every);
            InvalidSetting::new("images.refresh_every", message)
        });
        let span = check_span("images.refresh_every", self.refresh_every, SignedDuration::from_hours(24));
        let no_nodes = (self.prepull.is_some() && self.nodes.is_none()).then(|| {
            InvalidSetting::new(
                "images.prepull",
                "the nodes are not known; write `images.nodes: {}`, or remove it",
            )
        });
        let prepull = self.prepull.iter().flat_map(PrepullConfig::check);
        twice.into_iter().chain(often).chain(span.err()).chain(no_nodes).chain(prepull).collect()
    }
}

//! `images.prepull`: which images nodes pull before somebody asks for them.

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidSetting, check_span};
use crate::images::{DailyHours, PrepullLimits, WantedImage, check_wanted};

const MIN_TIME_LIMIT: SignedDuration = SignedDuration::from_secs(30);
const MAX_TIME_LIMIT: SignedDuration = SignedDuration::from_hours(6);
const MAX_PER_NODE: usize = 10;
const MAX_AT_ONCE: usize = 500;

/// Images that nodes pull before somebody asks for them: those that policies want, and then these. A node pulls an image
/// by a pod in the service's own namespace that ends at once and is removed. It needs `images.nodes` and the permissions
/// of `deploy/permissions/prepull.yaml`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PrepullConfig {
    /// Images that nodes are to have, with their tags; the most important first. If there are none and no policy wants
    /// any, nodes are to have `lab.image`.
    pub images: Vec<WantedImage>,
    /// Pulls begin in these hours of each day only, in UTC, such as `03:00-05:30`; at any time if there are none. Nodes
    /// that are new, for an hour, pull at any time.
    pub hours: Vec<DailyHours>,
    /// How many images a node pulls at once, 1 to 10.
    pub per_node: usize,
    /// How many images are pulled at once in the cluster, 1 to 500.
    pub at_once: usize,
    /// A pull that takes longer is ended and tried again later; 30 seconds to 6 hours.
    #[serde(deserialize_with = "crate::config::span::parse")]
    #[schemars(with = "String")]
    pub time_limit: SignedDuration,
}

impl Default for PrepullConfig {
    fn default() -> Self {
        Self {
            images: Vec::new(),
            hours: Vec::new(),
            per_node: 1,
            at_once: 10,
            time_limit: SignedDuration::from_mins(10),
        }
    }
}

impl PrepullConfig {
    /// How many images are pulled at once, how long, and when.
    pub fn limits(&self) -> PrepullLimits {
        let Self { hours, per_node, at_once, time_limit, .. } = self;
        PrepullLimits {
            per_node: *per_node,
            at_once: *at_once,
            time_limit: *time_limit,
            hours: hours.clone(),
        }
    }

    pub(super) fn check(&self) -> Vec<InvalidSetting> {
        let mut problems = Vec::new();
        let images = check_wanted(&self.images).err().unwrap_or_default().into_iter();
        problems.extend(images.map(|error| {
            InvalidSetting::new(format!("images.prepull.images{}", error.field), error.message)
        }));
        for (key, value, most) in
            [("per_node", self.per_node, MAX_PER_NODE), ("at_once", self.at_once, MAX_AT_ONCE)]
        {
            if value < 1 || value > most {
                let message = format!("is {value}; it must be 1 to {most}");
                problems.push(InvalidSetting::new(format!("images.prepull.{key}"), message));
            }
        }
        let key = "images.prepull.time_limit";
        if self.time_limit < MIN_TIME_LIMIT {
            let message = format!("{:#} is too short; write at least {MIN_TIME_LIMIT:#}", self.time_limit);
            problems.push(InvalidSetting::new(key, message));
        } else {
            problems.extend(check_span(key, self.time_limit, MAX_TIME_LIMIT).err());
        }
        problems
    }
}

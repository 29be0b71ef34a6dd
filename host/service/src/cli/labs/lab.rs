use std::collections::BTreeMap;

use anyhow::Context;
use serde::Deserialize;
use serde_json::Value;

/// The fields of a lab that the commands show. Fields that a newer service adds are ignored.
#[derive(Debug, Deserialize)]
pub(super) struct Lab {
    pub(super) username: String,
    #[serde(default)]
    pub(super) server: String,
    pub(super) status: String,
    pub(super) pod: String,
    pub(super) stage: Option<String>,
    pub(super) reason: Option<String>,
    pub(super) message: Option<String>,
    pub(super) progress: u8,
    pub(super) url: Option<String>,
    pub(super) image: Option<Image>,
    pub(super) started_at: Option<String>,
    pub(super) uid: u32,
    pub(super) gid: u32,
    #[serde(default)]
    pub(super) groups: Vec<Group>,
    #[serde(default)]
    pub(super) options: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) policy: Vec<DecidedBy>,
    #[serde(default)]
    pub(super) decided_by: BTreeMap<String, Vec<String>>,
    pub(super) job_id: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Image {
    pub(super) reference: String,
    pub(super) digest: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Group {
    pub(super) name: String,
    pub(super) id: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(super) struct DecidedBy {
    pub(super) name: String,
    pub(super) digest: String,
}

impl Lab {
    pub(super) fn parse(lab: Value) -> anyhow::Result<Self> {
        serde_json::from_value(lab)
            .context("the service's answer is not a lab; is --url that of the service?")
    }
}

//! The group to which the kubelet gives the files of volumes (`fsGroup`).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::names::DnsLabel;

/// The group to which the kubelet gives the files of volumes when a pod starts (`fsGroup`), and the labs that have one.
/// Kubernetes has one such group for all volumes of a pod, and a driver of volumes may ignore it: NFS does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct FsGroup {
    /// The group: `user` for the primary group of the lab's user, `none`, or the number of a group.
    pub group: FsGroupKind,
    /// Only labs with one of these volumes have it. Default: labs with a claim that the service creates, which belongs to
    /// root at first.
    pub volumes: Option<Vec<DnsLabel>>,
}

/// The group to which the files belong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FsGroupKind {
    /// No group: the files stay as they are.
    None,
    /// The primary group of the lab's user.
    #[default]
    User,
    /// This group. It is not 0, the group of root.
    Fixed(u32),
}

impl FsGroupKind {
    fn parse(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("none", _) => Ok(Self::None),
            ("user", _) => Ok(Self::User),
            // Kubernetes accepts the ids up to this one.
            (_, Ok(group @ 1..=2_147_483_647)) => Ok(Self::Fixed(group)),
            _ => Err(format!(
                "{text:?} is not a group; write `user`, `none` or the number of a group, 1 to 2147483647"
            )),
        }
    }
}

impl Serialize for FsGroupKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::None => serializer.serialize_str("none"),
            Self::User => serializer.serialize_str("user"),
            Self::Fixed(group) => serializer.serialize_u32(*group),
        }
    }
}

impl<'de> Deserialize<'de> for FsGroupKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// The serialized form: a number, or a word.
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Number(i64),
            Word(String),
        }
        let text = match Written::deserialize(deserializer)? {
            Written::Number(number) => number.to_string(),
            Written::Word(word) => word,
        };
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for FsGroupKind {
    fn schema_name() -> Cow<'static, str> {
        "FsGroupKind".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "`user`, `none`, or the number of a group.",
            "type": ["integer", "string"],
            "minimum": 1,
            "maximum": 2_147_483_647,
            "pattern": "^(user|none|[0-9]{1,10})$",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_a_word_or_a_number() {
        for (yaml, expected) in [
            ("{}", FsGroupKind::User),
            ("{group: user}", FsGroupKind::User),
            ("{group: none}", FsGroupKind::None),
            ("{group: 100}", FsGroupKind::Fixed(100)),
            ("{group: '100'}", FsGroupKind::Fixed(100)),
        ] {
            assert_eq!(serde_saphyr::from_str::<FsGroup>(yaml).unwrap().group, expected, "{yaml}");
        }
    }

    #[test]
    fn another_text_is_refused_with_the_remedy() {
        for yaml in ["{group: root}", "{group: 0}", "{group: -1}", "{group: 2147483648}", "{group: ''}"] {
            let error = serde_saphyr::from_str::<FsGroup>(yaml).unwrap_err().to_string();
            assert!(error.contains("write `user`, `none` or the number of a group"), "{yaml}: {error}");
        }
    }
}

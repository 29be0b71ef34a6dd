//! The key that identifies the spawn of a record, and the record's name.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::names::lab::LabKey;
use crate::names::{ChildName, ObjectName, extract, is_object};
use crate::values::digest::Digest;

/// The kind of a spawn.
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
pub enum SpawnKind {
    /// A user's server.
    #[default]
    Lab,
    /// A kernel of a lab.
    Kernel,
    /// A Dask pool of a lab.
    DaskPool,
    /// A user's server in the pods of a workload.
    Injected,
}

impl SpawnKind {
    /// Returns the kind in words.
    pub fn noun(self) -> &'static str {
        match self {
            Self::Lab | Self::Injected => "lab",
            Self::Kernel => "kernel",
            Self::DaskPool => "Dask pool",
        }
    }

    /// The first part of a record's name.
    fn prefix(self) -> &'static str {
        match self {
            Self::Lab | Self::Injected => "lab",
            Self::Kernel => "kernel",
            Self::DaskPool => "dask-pool",
        }
    }
}

/// Identifies a spawn among all spawns of one installation: a lab, or what a lab has started.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SpawnKey {
    /// The lab.
    #[serde(flatten)]
    pub lab: LabKey,
    /// The child of that lab, if the spawn is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub child: Option<ChildKey>,
}

/// Identifies a child among those of one lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct ChildKey {
    /// What the child is.
    pub kind: ChildKind,
    /// Its name.
    pub name: ChildName,
}

/// What a lab can start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum ChildKind {
    /// A Jupyter kernel.
    Kernel,
    /// A Dask pool.
    DaskPool,
}

/// Largest number of characters of one name's readable part in a record's name.
const MAX_PIECE_LENGTH: usize = 40;
/// Number of hexadecimal digits in the hash of a record's name: 64 bits, enough that nobody finds a second name with
/// the same hash.
const HASH_DIGITS: usize = 16;
/// Largest length of a child's names: the 63 characters of a host name, less those of the longest suffix (`-pull`).
const MAX_OBJECT_NAME_LENGTH: usize = 58;

impl From<LabKey> for SpawnKey {
    fn from(lab: LabKey) -> Self {
        Self { lab, child: None }
    }
}

impl From<ChildKind> for SpawnKind {
    fn from(kind: ChildKind) -> Self {
        match kind {
            ChildKind::Kernel => Self::Kernel,
            ChildKind::DaskPool => Self::DaskPool,
        }
    }
}

impl fmt::Display for SpawnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.lab)?;
        match &self.child {
            Some(child) => write!(f, " {} {}", SpawnKind::from(child.kind).noun(), child.name),
            None => Ok(()),
        }
    }
}

impl SpawnKey {
    /// Creates the key of a kernel of a lab.
    pub fn kernel(lab: LabKey, name: ChildName) -> Self {
        Self { lab, child: Some(ChildKey { kind: ChildKind::Kernel, name }) }
    }

    /// Creates the key of a Dask pool of a lab.
    pub fn dask_pool(lab: LabKey, name: ChildName) -> Self {
        Self { lab, child: Some(ChildKey { kind: ChildKind::DaskPool, name }) }
    }

    /// Returns the kind of the spawn.
    pub fn kind(&self) -> SpawnKind {
        self.child.as_ref().map_or(SpawnKind::Lab, |child| child.kind.into())
    }

    /// Returns true for a lab, false for a child.
    pub fn is_lab(&self) -> bool {
        self.child.is_none()
    }

    /// Returns the name of the record of a child's lab, or `None` for a lab.
    pub fn parent(&self) -> Option<ObjectName> {
        self.child.as_ref().map(|_| Self::from(self.lab.clone()).object_name())
    }

    /// Returns the name of the record: readable, valid for Kubernetes, and different for different keys.
    ///
    /// Names that are already valid are used as they are (`lab-ada`, `lab-ada--gpu`). Other names, and those of
    /// children, are shortened to a readable part, followed by `---` and a hash of the whole key. A name of the first
    /// form never contains `---`.
    pub fn object_name(&self) -> ObjectName {
        let parts: Vec<&str> = match &self.child {
            Some(child) => vec![self.lab.user.as_str(), child.name.as_str()],
            None => [self.lab.user.as_str(), self.lab.server.as_str()]
                .into_iter()
                .filter(|part| !part.is_empty())
                .collect(),
        };
        let plain = |part: &&str| is_object(part) && !part.contains("--") && part.len() <= MAX_PIECE_LENGTH;
        let name = if self.is_lab() && parts.iter().all(plain) {
            format!("{}-{}", self.kind().prefix(), parts.join("--"))
        } else {
            let pieces: Vec<String> = parts.iter().map(|part| extract(part, MAX_PIECE_LENGTH)).collect();
            format!("{}-{}---{}", self.kind().prefix(), pieces.join("--"), self.hash())
        };
        ObjectName::parse(name).unwrap_or_else(|_| ObjectName::constant("unnamed"))
    }

    /// Returns a name for a child's objects, which are in the namespace of its lab. The name has at most 58 characters,
    /// begins with as much of `prefix` as fits, and is different for different keys.
    pub fn object_prefix(&self, prefix: &str) -> ObjectName {
        let kind = self.kind().prefix();
        let room = MAX_OBJECT_NAME_LENGTH - kind.len() - HASH_DIGITS - 2;
        let readable = prefix.get(..prefix.len().min(room)).unwrap_or_default().trim_end_matches(['-', '.']);
        let pieces = [readable, kind, &self.hash()];
        let name = pieces.into_iter().filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("-");
        ObjectName::parse(name).unwrap_or_else(|_| ObjectName::constant("unnamed"))
    }

    fn hash(&self) -> String {
        let parent = self.parent();
        let parent = parent.as_ref().map_or("", ObjectName::as_str);
        let name = self.child.as_ref().map_or(self.lab.server.as_str(), |child| child.name.as_str());
        // 0xFF does not occur in UTF-8, so two different keys never give the same input to the hash.
        let text = [self.lab.user.as_str(), name, parent].map(str::as_bytes).join(&0xFF);
        Digest::sha256(&text).short_hex(HASH_DIGITS)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;
    use crate::names::{ServerName, Username};

    fn name(user: &str, server: &str) -> String {
        let key = LabKey::new(Username::parse(user).unwrap(), ServerName::parse(server).unwrap());
        SpawnKey::from(key).object_name().to_string()
    }

    #[test]
    fn a_record_is_named_after_its_user_and_server() {
        assert_eq!(name("ada", ""), "lab-ada");
        assert_eq!(name("ada", "gpu"), "lab-ada--gpu");
        assert_eq!(name("ada.l@example.org", ""), "lab-ada-l-example-org---2eb685454594786e");
        assert!(name("ada--gpu", "").starts_with("lab-ada-gpu---"), "never the name of ada's server gpu");
    }

    #[test]
    fn the_objects_of_a_child_are_named_after_its_lab_s() {
        let lab = LabKey::default_server(Username::parse("ada").unwrap());
        let kernel = SpawnKey::kernel(lab.clone(), ChildName::parse("K1").unwrap());
        assert_eq!(kernel.parent().unwrap(), "lab-ada");
        assert!(kernel.object_name().as_str().starts_with("kernel-ada--k1---"), "{}", kernel.object_name());
        let name = kernel.object_prefix("nb-ada");
        assert!(name.as_str().starts_with("nb-ada-kernel-"), "{name}");
        for prefix in ["", "nb.", &"x".repeat(200)] {
            let name = kernel.object_prefix(prefix);
            assert!(name.as_str().len() <= 58 && name.as_str() != "unnamed", "{name}");
        }
        let other = SpawnKey::dask_pool(lab, ChildName::parse("K1").unwrap());
        assert_ne!(other.object_name(), kernel.object_name());
    }

    proptest! {
        #[test]
        fn no_two_labs_share_a_record(names in prop::collection::vec(("[aA1.@-]{1,4}", "[aA1.@-]{0,3}"), 2..40)) {
            let mut seen: HashMap<String, (String, String)> = HashMap::new();
            for (user, server) in names {
                let (Ok(parsed), Ok(other)) = (Username::parse(user.as_str()), ServerName::parse(server.as_str())) else { continue };
                let record = SpawnKey::from(LabKey::new(parsed, other)).object_name().to_string();
                let first = seen.entry(record).or_insert_with(|| (user.clone(), server.clone()));
                prop_assert_eq!(first, &mut (user, server));
            }
        }
    }
}

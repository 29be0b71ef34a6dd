//! Identifies the spawn of a record, and derives the record's name.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::lab::LabKey;
use crate::names::{ObjectName, ServerName, Username, extract, is_object};

/// The kind of a spawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum SpawnKind {
    /// A user's server.
    Lab,
    /// A kernel of a lab.
    Kernel,
    /// A Dask pool of a lab.
    DaskPool,
}

impl SpawnKind {
    /// The first part of a record's name.
    fn prefix(self) -> &'static str {
        match self {
            Self::Lab => "lab",
            Self::Kernel => "kernel",
            Self::DaskPool => "dask-pool",
        }
    }
}

/// Identifies a spawn among all spawns of one installation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpawnKey {
    /// The kind of the spawn.
    pub kind: SpawnKind,
    /// The user.
    pub user: Username,
    /// For a lab, the server name, which is empty for the default server. For a kernel or pool, its own name.
    pub name: ServerName,
    /// For a kernel or pool, the name of the record of its lab; absent for a lab.
    pub parent: Option<ObjectName>,
}

/// Largest number of characters of one name's readable part in a record's name.
const LONGEST_PIECE: usize = 40;
/// Number of hexadecimal digits in the hash of a record's name: 64 bits, enough that nobody finds a second name with
/// the same hash.
const HASH_DIGITS: usize = 16;

impl SpawnKey {
    /// The key of a lab.
    pub fn lab(lab: &LabKey) -> Self {
        Self { kind: SpawnKind::Lab, user: lab.user.clone(), name: lab.server.clone(), parent: None }
    }

    /// The name of the record: readable, valid for Kubernetes, and different for different keys.
    ///
    /// Names that are already valid are used as they are (`lab-ada`, `lab-ada--gpu`). Other names are shortened to a
    /// readable part, followed by `---` and a hash of the whole key. A name of the first form never contains `---`.
    pub fn object_name(&self) -> ObjectName {
        let parts: Vec<&str> =
            [self.user.as_str(), self.name.as_str()].into_iter().filter(|part| !part.is_empty()).collect();
        let plain = |part: &&str| is_object(part) && !part.contains("--") && part.len() <= LONGEST_PIECE;
        let name = if self.parent.is_none() && parts.iter().all(plain) {
            format!("{}-{}", self.kind.prefix(), parts.join("--"))
        } else {
            let pieces: Vec<String> = parts.iter().map(|part| extract(part, LONGEST_PIECE)).collect();
            format!("{}-{}---{}", self.kind.prefix(), pieces.join("--"), self.hash())
        };
        ObjectName::parse(name).unwrap_or_else(|_| ObjectName::constant("unnamed"))
    }

    fn hash(&self) -> String {
        let parent = self.parent.as_ref().map_or("", ObjectName::as_str);
        // 0xFF does not occur in UTF-8, so two different keys never give the same input to the hash.
        let text = [self.user.as_str(), self.name.as_str(), parent].map(str::as_bytes).join(&0xFF);
        Sha256::digest(text).iter().take(HASH_DIGITS / 2).fold(String::new(), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    fn name(user: &str, server: &str) -> String {
        let key = LabKey::new(Username::parse(user).unwrap(), ServerName::parse(server).unwrap());
        SpawnKey::lab(&key).object_name().to_string()
    }

    #[test]
    fn a_record_is_named_after_its_user_and_server() {
        assert_eq!(name("ada", ""), "lab-ada");
        assert_eq!(name("ada", "gpu"), "lab-ada--gpu");
        assert_eq!(name("ada.l@example.org", ""), "lab-ada-l-example-org---2eb685454594786e");
        assert!(name("ada--gpu", "").starts_with("lab-ada-gpu---"), "never the name of ada's server gpu");
    }

    proptest! {
        #[test]
        fn no_two_labs_share_a_record(names in prop::collection::vec(("[aA1.@-]{1,4}", "[aA1.@-]{0,3}"), 2..40)) {
            let mut seen: HashMap<String, (String, String)> = HashMap::new();
            for (user, server) in names {
                let (Ok(parsed), Ok(other)) = (Username::parse(user.as_str()), ServerName::parse(server.as_str())) else { continue };
                let record = SpawnKey::lab(&LabKey::new(parsed, other)).object_name().to_string();
                let first = seen.entry(record).or_insert_with(|| (user.clone(), server.clone()));
                prop_assert_eq!(first, &mut (user, server));
            }
        }
    }
}

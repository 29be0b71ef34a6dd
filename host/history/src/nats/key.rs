//! The keys of the buckets.

use std::fmt::Write as _;

use wasmspawner_core::names::Username;
use wasmspawner_core::names::lab::{JobId, LabKey};

/// A key of one of the two buckets.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Key {
    /// The record of an operation.
    Job(JobId),
    /// The last operation of a lab.
    Lab(LabKey),
    /// What a user has used.
    Usage(Username),
    /// The last time at which the service was running.
    Seen,
    /// The process that writes.
    Leader,
}

/// One of the two buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Bucket {
    /// Operations, whose entries expire.
    Jobs,
    /// What users have used.
    Usage,
}

impl Key {
    /// The bucket of the key. Both have a key for the leader; this is for the others.
    pub(super) fn bucket(&self) -> Bucket {
        match self {
            Self::Job(_) | Self::Lab(_) | Self::Leader => Bucket::Jobs,
            Self::Usage(_) | Self::Seen => Bucket::Usage,
        }
    }

    /// The key as it is written.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Job(job_id) => format!("job.{job_id}"),
            Self::Lab(LabKey { user, server }) if server.is_default() => {
                format!("lab.{}", encode(user.as_str()))
            }
            Self::Lab(LabKey { user, server }) => {
                format!("lab.{}.{}", encode(user.as_str()), encode(server.as_str()))
            }
            Self::Usage(user) => format!("user.{}", encode(user.as_str())),
            Self::Seen => "seen".to_owned(),
            Self::Leader => "leader".to_owned(),
        }
    }

    /// Reads a key whose value the service reads back. `None` for all others, and for what others have written.
    pub(super) fn parse(name: &str) -> Option<Self> {
        match name.split_once('.') {
            None if name == "seen" => Some(Self::Seen),
            None if name == "leader" => Some(Self::Leader),
            Some(("job", id)) => id.parse().ok().map(Self::Job),
            Some(("user", name)) => Username::parse(&decode(name)?).ok().map(Self::Usage),
            _ => None,
        }
    }
}

/// Writes each byte that a key may not have, or that separates its parts, as `=` and two hexadecimal digits.
fn encode(name: &str) -> String {
    let mut encoded = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            encoded.push(byte.into());
        } else {
            // Writing to a String cannot fail.
            let _ = write!(encoded, "={byte:02x}");
        }
    }
    encoded
}

fn decode(encoded: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::with_capacity(encoded.len()), encoded.as_bytes());
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte == b'=' {
            let (digits, after) = rest.split_at_checked(2)?;
            bytes.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
            rest = after;
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use wasmspawner_core::names::ServerName;

    use super::*;

    #[test]
    fn keys_are_readable() {
        let ada = || Username::parse("ada.l@x").unwrap();
        let lab = |server: &str| Key::Lab(LabKey::new(ada(), ServerName::parse(server).unwrap()));
        let job = Key::Job(JobId::nil());
        assert_eq!(job.name(), "job.00000000-0000-0000-0000-000000000000");
        assert_eq!(Key::parse(&job.name()), Some(job));
        assert_eq!(lab("").name(), "lab.ada=2el=40x");
        assert_eq!(lab("gpu").name(), "lab.ada=2el=40x.gpu");
        for foreign in ["", "job.", "job.x", "user.=4", "user.=zz", "other", "seen.x", "user.=ff"] {
            assert_eq!(Key::parse(foreign), None, "{foreign:?}");
        }
    }

    proptest! {
        #[test]
        fn every_name_can_be_a_key(name in "\\PC{1,40}") {
            let encoded = encode(&name);
            prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_=".contains(&byte)));
            prop_assert_eq!(decode(&encoded), Some(name));
        }
    }
}

//! The mark that distinguishes the parts of one lab in a workload that several labs may share.

use crate::names::LabelValue;
use crate::values::digest::Digest;

/// The prefix of the label that every pod with a lab has, once for each of its labs.
const LABEL_PREFIX: &str = "lab.wasmspawner.io/";
/// The prefix of the label of every pod with a lab of one installation.
const INSTALLATION_PREFIX: &str = "injected.wasmspawner.io/";
/// The prefix of the names of a lab's containers and volumes.
const NAME_PREFIX: &str = "lab-";
/// Number of hexadecimal digits that distinguish labs.
const DIGITS: usize = 10;
/// The largest length of the name of a container or a volume.
const MAX_NAME_LENGTH: usize = 63;

/// The common part of the names of all parts of one lab in a workload. It follows from the uid of the lab's record, so
/// it differs between labs, between installations, and between a lab and an earlier one of the same name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LabMark(String);

/// Returns the label key of every pod that has a lab of this installation. Each installation has a key of its own,
/// because a workload may have labs of several installations.
pub fn installation_label(instance: &LabelValue) -> String {
    format!("{INSTALLATION_PREFIX}{instance}")
}

impl LabMark {
    /// Returns the mark of the lab whose record has this uid.
    pub fn from_spawn(spawn: &str) -> Self {
        Self(Digest::sha256(spawn.as_bytes()).short_hex(DIGITS))
    }

    /// Returns the label key of the lab's pods. The label's value is the id of the operation that started the lab.
    pub fn label(&self) -> String {
        format!("{LABEL_PREFIX}{}", self.0)
    }

    /// The name of the lab's container.
    pub fn container(&self) -> String {
        format!("{NAME_PREFIX}{}", self.0)
    }

    /// Returns the name in the workload's pod template of a volume or an init container that the lab calls `name`.
    pub fn part(&self, name: &str) -> String {
        let readable = format!("{}-{name}", self.container());
        if readable.len() <= MAX_NAME_LENGTH {
            return readable;
        }
        format!("{}-{}", self.container(), Digest::sha256(name.as_bytes()).short_hex(DIGITS))
    }

    /// Returns true for the name of one of the lab's containers or volumes.
    pub fn owns(&self, name: &str) -> bool {
        Self::of_name(name).is_some_and(|mark| mark == *self)
    }

    /// Returns true for the name of a container or volume of any lab.
    pub fn is_of_a_lab(name: &str) -> bool {
        Self::of_name(name).is_some()
    }

    /// Returns the mark of the lab whose container or volume has this name.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let rest = name.strip_prefix(NAME_PREFIX)?;
        let (mark, rest) = rest.split_at_checked(DIGITS)?;
        let is_ours = mark.bytes().all(|c| matches!(c, b'0'..=b'9' | b'a'..=b'f'));
        (is_ours && (rest.is_empty() || rest.starts_with('-'))).then(|| Self(mark.to_owned()))
    }

    /// Returns the mark of the lab whose pods have this label.
    pub(super) fn of_label(key: &str) -> Option<Self> {
        let mark = key.strip_prefix(LABEL_PREFIX)?;
        let is_one =
            mark.len() == DIGITS && mark.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        is_one.then(|| Self(mark.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_lab_are_found_by_their_names() {
        let mark = LabMark::from_spawn("0b0e9a52-9f5f-4d53-8d5c-3d0c1f7f0a01");
        for name in [mark.container(), mark.part("nss"), mark.part(&"x".repeat(63))] {
            assert!(mark.owns(&name) && name.len() <= 63, "{name}");
        }
        assert_ne!(mark.part(&"x".repeat(62)), mark.part(&"x".repeat(63)));
        let container = mark.container();
        for name in ["web", "lab-", "lab-web", &format!("{container}0"), &format!("x{container}")] {
            assert!(!mark.owns(name), "{name}");
        }
        assert_eq!(LabMark::of_label(&mark.label()), Some(mark.clone()));
        assert!(!LabMark::from_spawn("another").owns(&container));
    }
}

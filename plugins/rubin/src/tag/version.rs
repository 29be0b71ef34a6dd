use std::cmp::Ordering;
use std::fmt;

/// The version of a release (`21.0.1`), a candidate (`22.0.0-rc1`), a weekly (`2021.22.0`) or a daily (`2021.5.27`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) major: u64,
    pub(crate) minor: u64,
    pub(crate) patch: u64,
    /// The number of a release candidate. A release is newer than all of its candidates.
    pub(crate) candidate: Option<u64>,
}

impl Version {
    /// Reads `29.0.0` or `29.0.0-rc1`.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        const WRONG: &str = "must be a version such as 29.0.0 or 29.0.0-rc1";
        let (numbers, candidate) = match text.split_once("-rc") {
            Some((numbers, candidate)) => (numbers, Some(candidate.parse().map_err(|_| WRONG)?)),
            None => (text, None),
        };
        let mut numbers = numbers.split('.').map(|number| number.parse().ok());
        match (numbers.next().flatten(), numbers.next().flatten(), numbers.next().flatten(), numbers.next()) {
            (Some(major), Some(minor), Some(patch), None) => Ok(Self { major, minor, patch, candidate }),
            _ => Err(WRONG),
        }
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let key = |version: &Self| {
            let Self { major, minor, patch, candidate } = *version;
            (major, minor, patch, candidate.is_none(), candidate)
        };
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { major, minor, patch, candidate } = self;
        write!(f, "{major}.{minor}.{patch}")?;
        candidate.map_or(Ok(()), |number| write!(f, "-rc{number}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count_and_a_release_follows_its_candidates() {
        let versions = ["9.1.1", "22.0.0-rc2", "22.0.0-rc10", "22.0.0", "22.0.1-rc1"];
        let parsed: Vec<_> = versions.iter().map(|text| Version::parse(text).unwrap()).collect();
        assert!(parsed.is_sorted());
        assert_eq!(parsed.iter().map(Version::to_string).collect::<Vec<_>>(), versions);
    }

    #[test]
    fn other_texts_are_no_versions() {
        for text in ["", "1", "1.2", "1.2.3.4", "1.2.x", "1.2.3-rc", "1.2.3-alpha", "v1.2.3"] {
            assert!(Version::parse(text).is_err(), "{text}");
        }
    }
}

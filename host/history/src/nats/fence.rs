//! The number of the process that has written an entry, by which an earlier leader is recognized.

/// The number of a writer: greater than those of all earlier ones. Entries without a number count as 0.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct WriterNumber(pub(super) u64);

/// The header of an entry with the number of its writer.
pub(super) const WRITER_HEADER: &str = "Wasmspawner-Writer";

impl WriterNumber {
    /// The number of a process that begins to write. `leadership` is that of its leadership, and `greatest` the greatest
    /// number of all entries: a Lease that was deleted and made again begins to count anew.
    pub(super) fn of_leader(leadership: u64, greatest: Self) -> Self {
        if leadership >= greatest.0 { Self(leadership) } else { Self(greatest.0.saturating_add(1)) }
    }

    /// Reads the header. What others have written there counts as 0.
    pub(super) fn parse(header: Option<&str>) -> Self {
        Self(header.and_then(|number| number.parse().ok()).unwrap_or_default())
    }

    /// True if an entry of `other` may be replaced.
    pub(super) fn may_replace(self, other: Self) -> bool {
        other <= self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_leader_has_a_greater_number_whatever_the_lease_says() {
        let of = |leadership, greatest| WriterNumber::of_leader(leadership, WriterNumber(greatest)).0;
        assert_eq!([of(7, 0), of(7, 6), of(7, 7), of(1, 7), of(0, 0)], [7, 7, 7, 8, 0]);
        assert_eq!(of(1, u64::MAX), u64::MAX);
    }

    #[test]
    fn only_entries_of_later_leaders_are_left_alone() {
        let own = WriterNumber(7);
        let theirs = [None, Some(""), Some("-1"), Some("6"), Some("7"), Some("8")];
        let may = theirs.map(|header| own.may_replace(WriterNumber::parse(header)));
        assert_eq!(may, [true, true, true, true, true, false]);
    }
}

use std::cmp::Ordering;

use super::Tag;

/// Compares tags in the order of the menu: by type, then the newest first. Tags that differ only in leading zeros, or
/// in the number of `exp_` prefixes, are equal. A stable sort keeps those in the order of the registry.
pub(super) fn newest_first(left: &Tag, right: &Tag) -> Ordering {
    left.kind.cmp(&right.kind).then_with(|| age(right).cmp(&age(left)))
}

/// Returns a key that is greater for a newer tag. Tags without a version count as newer than all versions and are
/// ordered by name. A tag for all architectures comes before those for one.
fn age(tag: &Tag) -> impl Ord + '_ {
    (
        tag.version.is_none(),
        tag.version,
        tag.base.as_deref(),
        tag.cycle,
        tag.cycle_build,
        tag.rsp_build,
        tag.extra.as_deref(),
        tag.architecture.is_none(),
        tag.architecture.as_deref(),
    )
}

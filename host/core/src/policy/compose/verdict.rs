use crate::policy::Verdict;

/// Combines the verdicts of a chain: allowed if all allow, or else the first denial.
pub fn all_allow(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    verdicts.into_iter().find(|verdict| *verdict != Verdict::Allow).unwrap_or(Verdict::Allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_denial_counts() {
        let deny = |why: &str| Verdict::Deny(why.into());
        assert_eq!(all_allow([]), Verdict::Allow);
        assert_eq!(all_allow([Verdict::Allow, deny("one"), deny("two")]), deny("one"));
    }
}

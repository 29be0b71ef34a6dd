//! The order of tags whose meaning is not configured: newest first, if the tags show an order.

use super::Tag;

/// The sort key of a tag, by which newer tags come first. `latest` comes first, and other tags without a number
/// (`main`, `buildcache`) come last. Between them numbers count: `1.10` is newer than `1.9`, and `2026-10-01` newer
/// than `2026-09-30`. A version comes before its variants (`1.0-arm64`) and its pre-releases (`1.0-rc1`, `1.0b2`). Keys
/// are equal only for equal tags. Creating a key takes longer than comparing two.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct NewestFirst<'a> {
    rank: u8,
    parts: Vec<Part<'a>>,
    tag: &'a str,
}

impl<'a> NewestFirst<'a> {
    pub(super) fn from_tag(tag: &'a Tag) -> Self {
        let tag = tag.as_str();
        Self { rank: rank(tag), parts: parts(tag), tag }
    }
}

fn rank(tag: &str) -> u8 {
    match tag {
        "latest" => 0,
        _ if tag.contains(|c: char| c.is_ascii_digit()) => 1,
        _ => 2,
    }
}

/// A part of a tag. The order of the variants is newest first.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part<'a> {
    Number(std::cmp::Reverse<(usize, &'a str)>),
    End,
    Text(&'a str),
    PreRelease(u8),
}

/// Words of pre-releases, oldest last.
const PRE_RELEASES: [&[&str]; 4] =
    [&["rc", "pre", "preview"], &["beta", "b"], &["alpha", "a"], &["dev", "nightly"]];

fn parts(tag: &str) -> Vec<Part<'_>> {
    let tag =
        tag.strip_prefix('v').filter(|rest| rest.starts_with(|c: char| c.is_ascii_digit())).unwrap_or(tag);
    let mut parts = Vec::new();
    for piece in tag.split(['.', '_', '-']).filter(|piece| !piece.is_empty()) {
        let mut rest = piece;
        while let Some(first) = rest.chars().next() {
            let digits = first.is_ascii_digit();
            let end = rest.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            parts.push(if digits { number(part) } else { text(part, parts.is_empty()) });
            rest = after;
        }
    }
    parts.push(Part::End);
    parts
}

/// Returns the key of a number of any length: without leading zeros, the longer number is larger.
fn number(digits: &str) -> Part<'_> {
    let digits = digits.trim_start_matches('0');
    Part::Number(std::cmp::Reverse((digits.len(), digits)))
}

fn text(word: &str, is_first: bool) -> Part<'_> {
    let rank =
        PRE_RELEASES.iter().position(|words| words.iter().any(|known| word.eq_ignore_ascii_case(known)));
    match rank.filter(|_| !is_first).and_then(|rank| u8::try_from(rank).ok()) {
        Some(rank) => Part::PreRelease(rank),
        None => Part::Text(word),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn order(a: &Tag, b: &Tag) -> std::cmp::Ordering {
        NewestFirst::from_tag(a).cmp(&NewestFirst::from_tag(b))
    }

    #[test]
    fn newer_tags_come_first() {
        for sorted in [
            &["latest", "2.0", "2.0-arm64", "1.10", "1.9.1", "1.9", "buildcache", "main"][..],
            &["v2.0.0", "v2.0.0-rc10", "v2.0.0-rc2", "v2.0.0-beta1", "v2.0.0-alpha.3", "v1.9"],
            &["2026-10-01", "2026-09-30", "2025-12-31"],
            &["w_2026_41", "w_2026_40", "w_2026_9"],
            &["3.0", "v2.0", "1.0"],
            &["20261001000000000000000000000000000001", "20261001000000000000000000000000000000"],
        ] {
            let mut tags: Vec<Tag> = sorted.iter().rev().map(|tag| Tag::parse(*tag).unwrap()).collect();
            tags.sort_by(order);
            assert_eq!(tags.iter().map(Tag::as_str).collect::<Vec<_>>(), sorted);
        }
    }

    fn tag() -> impl Strategy<Value = Tag> {
        "[v_]?[0-9a-c]{1,3}([._-]?(rc|b|[0-9]{1,3}|x)){0,3}".prop_map(|text| Tag::parse(text).unwrap())
    }

    proptest! {
        #[test]
        fn the_order_is_total(a in tag(), b in tag(), c in tag()) {
            prop_assert_eq!(order(&a, &b), order(&b, &a).reverse());
            prop_assert_eq!(order(&a, &b).is_eq(), a == b);
            if order(&a, &b).is_lt() && order(&b, &c).is_lt() {
                prop_assert!(order(&a, &c).is_lt(), "{a} {b} {c}");
            }
        }
    }
}

use proptest::prelude::*;

use super::*;

#[test]
fn a_tag_says_what_its_image_is() {
    for (text, kind, name) in [
        ("r29_0_0", Kind::Release, "Release r29.0.0"),
        ("r030_00_09", Kind::Release, "Release r30.0.9"),
        ("r030_00_09_rc01", Kind::ReleaseCandidate, "Release Candidate r30.0.9-rc01"),
        ("exp_r030_00_09", Kind::Experimental, "Experimental Release r30.0.9"),
        ("r29_0_0_rc2x", Kind::Release, "Release r29.0.0 [rc2x]"),
        ("r170", Kind::Release, "Release r17.0.0"),
        ("r170_rsp1", Kind::Unknown, "r170_rsp1"),
        ("w_2025_07", Kind::Weekly, "Weekly 2025_07"),
        ("w_2021_53_c0020", Kind::Unknown, "w_2021_53 (SAL Cycle 0020)"),
        ("w_99999999999999999999_1", Kind::Unknown, "w_99999999999999999999_1"),
        ("d_2025_02_29", Kind::Unknown, "d_2025_02_29"),
        ("exp_exp_", Kind::Experimental, "Experimental exp_"),
        ("_c0020", Kind::Unknown, " (SAL Cycle 0020)"),
        ("x_c99999999999999999999", Kind::Unknown, "x_c99999999999999999999"),
        ("", Kind::Unknown, ""),
    ] {
        let tag = Tag::parse(text);
        assert_eq!((tag.kind, tag.name.as_str()), (kind, name), "{text}");
    }
}

#[test]
fn an_alias_is_called_by_its_name_and_its_target() {
    let alias_of = |alias: &str, target: &str| {
        let mut tag = Tag::alias(alias);
        tag.become_alias_of(&Tag::parse(target));
        tag.name
    };
    assert_eq!(alias_of("recommended", "w_2025_07"), "Recommended (Weekly 2025_07)");
    assert_eq!(alias_of("recommended_k0004", "r29_0_0"), "Recommended K0004 (Release r29.0.0)");
    assert_eq!(alias_of("latest-arm64", "w_2025_07-arm64"), "Latest (Weekly 2025_07) [arm64]");
    assert_eq!(
        alias_of("recommended_c0027-arm64", "w_2025_07_c0040.002_rsp7-arm64"),
        "Recommended (Weekly 2025_07, SAL Cycle 0040, Build 002, RSP Build 7) [arm64]",
        "neither the cycle nor the architecture of the alias is named twice"
    );
}

#[test]
fn the_cycle_counts_before_the_build_of_the_image() {
    let mut tags =
        ["w_2025_07_rsp9", "w_2025_07_c0040.002", "w_2025_07_c0041.001_rsp1", "w_2025_07_c0040.001_rsp8"];
    tags.sort_by(|left, right| Tag::parse(left).newest_first(&Tag::parse(right)));
    assert_eq!(
        tags,
        ["w_2025_07_c0041.001_rsp1", "w_2025_07_c0040.002", "w_2025_07_c0040.001_rsp8", "w_2025_07_rsp9"]
    );
}

#[test]
fn long_tags_need_no_stack() {
    let tag = Tag::parse(&"exp_".repeat(100_000));
    assert_eq!(tag.kind, Kind::Experimental);
}

/// Texts that resemble tags.
fn tag_like() -> impl Strategy<Value = String> {
    let number = "[0-9]{1,4}";
    let head = prop_oneof![
        (number, number, number).prop_map(|(a, b, c)| format!("r{a}_{b}_{c}")),
        (number, number, number, number).prop_map(|(a, b, c, n)| format!("r{a}_{b}_{c}_rc{n}")),
        "r[0-9]{3}".prop_map(String::from),
        ("20[0-9]{2}", "[0-5]?[0-9]").prop_map(|(year, week)| format!("w_{year}_{week}")),
        ("20[0-9]{2}", "[01]?[0-9]", "[0-3]?[0-9]").prop_map(|(y, m, d)| format!("d_{y}_{m}_{d}")),
        "[a-z_]{0,8}".prop_map(String::from),
    ];
    let suffix = prop_oneof![
        Just(String::new()),
        (number, number).prop_map(|(cycle, build)| format!("_c{cycle}.{build}")),
        "_c[0-9]{1,4}".prop_map(String::from),
        "_rsp[0-9]{1,2}".prop_map(String::from),
        "_[a-z.-]{0,4}".prop_map(String::from),
        "-[a-z0-9A-Z]{0,5}".prop_map(String::from),
    ];
    (proptest::collection::vec(Just("exp_"), 0..3), head, proptest::collection::vec(suffix, 0..4))
        .prop_map(|(prefix, head, suffixes)| format!("{}{head}{}", prefix.concat(), suffixes.concat()))
}

proptest! {
    #[test]
    fn any_text_is_a_tag_and_keeps_its_text(text in any::<String>()) {
        for tag in [Tag::parse(&text), Tag::alias(&text)] {
            prop_assert_eq!(tag.as_str(), text.as_str());
        }
    }

    #[test]
    fn every_tag_parses_to_itself(text in tag_like()) {
        let tag = Tag::parse(&text);
        prop_assert_eq!(tag.as_str(), text.as_str());
        prop_assert_eq!(Tag::parse(tag.as_str()), tag);
    }

    #[test]
    fn a_tag_has_either_a_version_or_a_name_of_its_own(text in tag_like()) {
        let tag = Tag::parse(&text);
        prop_assert_eq!(tag.version.is_some(), tag.base.is_none());
        prop_assert_eq!(tag.kind == Kind::Unknown, tag.version.is_none() && !tag.name.starts_with("Experimental "));
    }

    #[test]
    fn the_order_is_total(a in tag_like(), b in tag_like(), c in tag_like()) {
        let [a, b, c] = [a, b, c].map(|text| Tag::parse(&text));
        prop_assert_eq!(a.newest_first(&a), Ordering::Equal);
        prop_assert_eq!(a.newest_first(&b), b.newest_first(&a).reverse());
        if a.newest_first(&b).is_le() && b.newest_first(&c).is_le() {
            prop_assert!(a.newest_first(&c).is_le());
        }
        if a.newest_first(&b).is_eq() {
            prop_assert_eq!(a.newest_first(&c), b.newest_first(&c));
        }
    }

    #[test]
    fn tags_of_equal_age_differ_only_in_how_they_are_written(a in tag_like(), b in tag_like()) {
        let [a, b] = [a, b].map(|text| Tag::parse(&text));
        if a.newest_first(&b).is_eq() {
            let meaning = |tag: &Tag| (tag.kind, tag.version, tag.base.clone(), tag.cycle, tag.architecture.clone());
            prop_assert_eq!(meaning(&a), meaning(&b));
        }
    }
}

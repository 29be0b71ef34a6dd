use std::collections::BTreeMap;

use wasmspawner_sdk::Section;

use crate::date::{Date, moment};
use crate::duration;
use crate::tag::{Kind, Tag, Version};

/// The limits on the list of all other images (`dropdownMenu` of the configuration). Aliases and unknown tags are
/// always listed.
#[derive(Default)]
pub(crate) struct Dropdown {
    filters: BTreeMap<Kind, Filter>,
}

/// The limits for one type. A limit applies only to tags with the limited property: a date, a version of a release, an
/// RSP build.
#[derive(Default)]
struct Filter {
    number: Option<usize>,
    /// The maximum age in milliseconds.
    age: Option<u64>,
    /// In milliseconds since the Unix epoch.
    cutoff_date: Option<i64>,
    cutoff_version: Option<Version>,
    cutoff_build: Option<u64>,
}

const KEYS: [(&str, Kind); 5] = [
    ("release", Kind::Release),
    ("weekly", Kind::Weekly),
    ("daily", Kind::Daily),
    ("releaseCandidate", Kind::ReleaseCandidate),
    ("experimental", Kind::Experimental),
];

impl Dropdown {
    pub(crate) fn read(config: &mut Section<'_>) -> Self {
        let read = config.section("dropdownMenu", |menu| {
            let filter = |(key, kind)| Some((kind, menu.section(key, Filter::read)?));
            Self { filters: KEYS.into_iter().filter_map(filter).collect() }
        });
        read.unwrap_or_default()
    }

    /// Returns a check for the tags of the menu, which must be passed to it in the order of the menu.
    pub(crate) fn at(&self, now_millis: u64) -> Check<'_> {
        Check { dropdown: self, now_millis, shown: BTreeMap::new() }
    }
}

/// Counts the images of each type that are shown.
pub(crate) struct Check<'a> {
    dropdown: &'a Dropdown,
    now_millis: u64,
    shown: BTreeMap<Kind, usize>,
}

impl Check<'_> {
    /// The reason why the tag is not in the list.
    pub(crate) fn refuses(&mut self, tag: &Tag) -> Option<String> {
        let filter = self.dropdown.filters.get(&tag.kind)?;
        if let Some(reason) = filter.refuses(tag, self.now_millis) {
            return Some(reason);
        }
        let shown = self.shown.entry(tag.kind).or_default();
        *shown += 1;
        let number = filter.number.filter(|number| *shown > *number)?;
        Some(format!("The list has only the newest {number} of this type."))
    }
}

impl Filter {
    fn read(filter: &mut Section<'_>) -> Self {
        Self {
            number: filter.optional("number"),
            age: filter.parsed("age", duration::seconds).map(|seconds| seconds * 1000),
            cutoff_date: filter.parsed("cutoffDate", moment),
            cutoff_version: filter.parsed("cutoffVersion", Version::parse),
            cutoff_build: filter.optional("cutoffBuild"),
        }
    }

    fn refuses(&self, tag: &Tag, now_millis: u64) -> Option<String> {
        let oldest = self.age.map(|age| i64::try_from(now_millis.saturating_sub(age)).unwrap_or(i64::MAX));
        let begins_before =
            |date: Date, limit: Option<i64>| limit.is_some_and(|limit| date.start_millis() < limit);
        if tag.date.is_some_and(|date| begins_before(date, oldest)) {
            return Some("It is older than the images in the list.".into());
        }
        if tag.date.is_some_and(|date| begins_before(date, self.cutoff_date)) {
            return Some("It is from before the first day whose images are in the list.".into());
        }
        if tag.has_release_version()
            && let (Some(version), Some(cutoff)) = (tag.version, self.cutoff_version)
            && version < cutoff
        {
            return Some(format!("The list begins with version {cutoff}."));
        }
        match (tag.rsp_build, self.cutoff_build) {
            (Some(build), Some(cutoff)) if build < cutoff => {
                Some(format!("The list begins with RSP build {cutoff}."))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wasmspawner_sdk::config;

    use super::*;

    /// 2025-03-01, noon.
    const NOW: u64 = (20_148 * 24 + 12) * 3_600_000;

    /// The tags that are in the list.
    fn listed<'a>(menu: &Value, tags: &[&'a str]) -> Vec<&'a str> {
        let text = json!({"dropdownMenu": menu}).to_string();
        let (dropdown, _) = config::check(&text, Dropdown::read).unwrap();
        let mut check = dropdown.at(NOW);
        tags.iter().copied().filter(|tag| check.refuses(&Tag::parse(tag)).is_none()).collect()
    }

    #[test]
    fn without_filters_everything_is_listed() {
        let tags = ["r29_0_0", "w_2025_07", "d_2001_01_01", "exp_x", "unknown"];
        assert_eq!(listed(&json!({}), &tags), tags);
    }

    #[test]
    fn the_newest_are_counted_for_each_type() {
        let tags = ["r29_0_0", "r28_0_0", "w_2025_07", "w_2025_06", "w_2025_05"];
        let menu = json!({"release": {"number": 0}, "weekly": {"number": 2}});
        assert_eq!(listed(&menu, &tags), ["w_2025_07", "w_2025_06"]);
    }

    #[test]
    fn the_number_counts_what_the_other_limits_leave() {
        let tags = ["w_2025_07_rsp9", "w_2025_06_rsp20", "w_2025_05"];
        let menu = json!({"weekly": {"number": 1, "cutoffBuild": 20}});
        assert_eq!(listed(&menu, &tags), ["w_2025_06_rsp20"]);
    }

    #[test]
    fn age_is_counted_from_the_beginning_of_the_day() {
        let tags = ["d_2025_02_28", "d_2025_02_27", "d_2025_02_26"];
        assert_eq!(listed(&json!({"daily": {"age": "2d"}}), &tags), ["d_2025_02_28"]);
        assert_eq!(listed(&json!({"daily": {"age": "2d12h"}}), &tags), ["d_2025_02_28", "d_2025_02_27"]);
    }

    #[test]
    fn limits_apply_to_tags_that_have_what_they_limit() {
        let tags = ["exp_d_2025_02_26", "exp_w_2025_01", "exp_r28_0_0", "exp_r29_0_0_rc1", "exp_x"];
        let filter = json!({"cutoffDate": "2025-02-01", "cutoffVersion": "29.0.0-rc1"});
        assert_eq!(
            listed(&json!({"experimental": filter}), &tags),
            ["exp_d_2025_02_26", "exp_r29_0_0_rc1", "exp_x"]
        );
        assert_eq!(listed(&json!({"releaseCandidate": filter}), &tags), tags, "another type");
    }

    #[test]
    fn a_day_that_begins_before_the_cutoff_is_not_listed() {
        let tags = ["d_2025_02_28", "d_2025_02_27", "w_2025_09"];
        assert_eq!(listed(&json!({"daily": {"cutoffDate": "2025-02-27T00:00:00Z"}}), &tags), tags);
        let later = json!({"daily": {"cutoffDate": "2025-02-27T12:00:00+01:00"}});
        assert_eq!(listed(&later, &tags), ["d_2025_02_28", "w_2025_09"]);
    }

    #[test]
    fn wrong_limits_are_errors() {
        let text = json!({"dropdownMenu": {
            "weekly": {"number": -1, "age": "soon", "cutoffDate": "2025", "cutoffVersion": 29, "cutoff": 1},
            "alias": {}
        }});
        let errors = config::check(&text.to_string(), Dropdown::read).err().unwrap();
        let fields: Vec<_> = errors.iter().map(|error| error.field.rsplit('/').next().unwrap()).collect();
        assert_eq!(fields, ["number", "age", "cutoffDate", "cutoffVersion", "cutoff", "alias"]);
    }
}

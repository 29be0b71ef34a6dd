//! The grammar of tags. The first form that fits the whole tag decides.

use super::Tag;
use super::kind::Kind;
use super::suffixes::{Suffixes, digits, split_architecture};
use super::version::Version;
use crate::date::Date;

/// Reads any text. A text of no known form is [`Kind::Unknown`].
pub(super) fn parse(text: &str) -> Tag {
    // `exp_` may be repeated. A loop needs no stack, however long the text is.
    let mut of = text;
    let mut experimental = String::new();
    while let Some(rest) = of.strip_prefix("exp_").filter(|rest| !rest.is_empty()) {
        of = rest;
        experimental.push_str(Kind::Experimental.as_str());
        experimental.push(' ');
    }
    let mut tag = release_candidate(of)
        .or_else(|| release(of))
        .or_else(|| old_release(of))
        .or_else(|| weekly(of))
        .or_else(|| daily(of))
        .unwrap_or_else(|| unknown(of, Kind::Unknown));
    if !experimental.is_empty() {
        tag.kind = Kind::Experimental;
        tag.name.insert_str(0, &experimental);
    }
    text.clone_into(&mut tag.text);
    tag
}

/// Reads a tag that the site lists as an alias.
pub(super) fn parse_alias(text: &str) -> Tag {
    let mut tag = unknown(text, Kind::Alias);
    text.clone_into(&mut tag.text);
    tag
}

/// Parses `r<major>_<minor>_<patch>_rc<n>` and suffixes.
fn release_candidate(text: &str) -> Option<Tag> {
    let ([major, minor, patch], rest) = release_numbers(text)?;
    let (candidate, rest) = rest.strip_prefix("_rc").and_then(digits)?;
    let version = version(major, minor, patch, Some(candidate))?;
    let Version { major, minor, patch, .. } = version;
    let shown = format!("r{major}.{minor}.{patch}-rc{candidate}");
    with_suffixes(Kind::ReleaseCandidate, &shown, version, None, rest)
}

/// Parses `r<major>_<minor>_<patch>` and suffixes.
fn release(text: &str) -> Option<Tag> {
    let ([major, minor, patch], rest) = release_numbers(text)?;
    let version = version(major, minor, patch, None)?;
    with_suffixes(Kind::Release, &format!("r{version}"), version, None, rest)
}

fn release_numbers(text: &str) -> Option<([&str; 3], &str)> {
    let (major, rest) = text.strip_prefix('r').and_then(digits)?;
    let (minor, rest) = rest.strip_prefix('_').and_then(digits)?;
    let (patch, rest) = rest.strip_prefix('_').and_then(digits)?;
    Some(([major, minor, patch], rest))
}

/// Parses `r`, two digits of the major version and one of the minor, as in `r170`. Such tags have no suffixes.
fn old_release(text: &str) -> Option<Tag> {
    let (numbers, rest) = text.strip_prefix('r').and_then(digits)?;
    let (major, minor) = numbers.split_at_checked(2).filter(|(_, minor)| minor.len() == 1)?;
    let version = version(major, minor, "0", None)?;
    with_suffixes(Kind::Release, &format!("r{version}"), version, None, rest).filter(|_| rest.is_empty())
}

/// Parses `w_<year>_<week>` and suffixes.
fn weekly(text: &str) -> Option<Tag> {
    let (year, rest) = text.strip_prefix("w_").and_then(digits)?;
    let (week, rest) = rest.strip_prefix('_').and_then(digits)?;
    let date = Date::thursday_of_week(year.parse().ok()?, week.parse().ok()?)?;
    let shown = format!("{year}_{week}");
    with_suffixes(Kind::Weekly, &shown, version(year, week, "0", None)?, Some(date), rest)
}

/// Parses `d_<year>_<month>_<day>` and suffixes.
fn daily(text: &str) -> Option<Tag> {
    let (year, rest) = text.strip_prefix("d_").and_then(digits)?;
    let (month, rest) = rest.strip_prefix('_').and_then(digits)?;
    let (day, rest) = rest.strip_prefix('_').and_then(digits)?;
    let date = Date::from_ymd(year.parse().ok()?, month.parse().ok()?, day.parse().ok()?)?;
    let shown = format!("{year}_{month}_{day}");
    with_suffixes(Kind::Daily, &shown, version(year, month, day, None)?, Some(date), rest)
}

/// Parses `<name>_c<cycle>` or `<name>`, each with or without `-<architecture>`.
fn unknown(text: &str, kind: Kind) -> Tag {
    let (before, architecture) = split_architecture(text);
    let (base, cycle) = match before.rsplit_once("_c") {
        Some((base, cycle)) if is_number(cycle) => (base, Some(cycle)),
        _ => (before, None),
    };
    let mut name = if kind == Kind::Alias { title_case(base) } else { base.to_owned() };
    let cycle_shown = cycle.map(|cycle| format!(" (SAL Cycle {cycle})"));
    name.extend([cycle_shown, architecture.map(in_brackets)].into_iter().flatten());
    Tag {
        base: Some(base.to_owned()),
        cycle: cycle.and_then(|cycle| cycle.parse().ok()),
        architecture: architecture.map(str::to_owned),
        ..Tag::named(kind, name)
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.parse::<u64>().is_ok() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn version(major: &str, minor: &str, patch: &str, candidate: Option<&str>) -> Option<Version> {
    let candidate = candidate.map(|number| number.parse().ok());
    Some(Version {
        major: major.parse().ok()?,
        minor: minor.parse().ok()?,
        patch: patch.parse().ok()?,
        candidate: match candidate {
            Some(number) => Some(number?),
            None => None,
        },
    })
}

/// Builds a tag with a version. `rest` must consist of suffixes only.
fn with_suffixes(kind: Kind, shown: &str, version: Version, date: Option<Date>, rest: &str) -> Option<Tag> {
    let mut name = format!("{} {shown}", kind.as_str());
    let Suffixes { cycle, cycle_build, rsp_build, extra, architecture } = Suffixes::parse(rest)?;
    let additions = [
        cycle.zip(cycle_build).map(|(cycle, build)| format!(" (SAL Cycle {cycle}, Build {build})")),
        rsp_build.map(|build| format!(" (RSP Build {build})")),
        extra.map(in_brackets),
        architecture.map(in_brackets),
    ];
    name.extend(additions.into_iter().flatten());
    let number = |text: Option<&str>| text.map(|text| text.parse().ok());
    Some(Tag {
        version: Some(version),
        cycle: number(cycle).flatten(),
        cycle_build: number(cycle_build).flatten(),
        rsp_build: number(rsp_build).flatten(),
        extra: extra.map(str::to_owned),
        architecture: architecture.map(str::to_owned),
        date,
        ..Tag::named(kind, name)
    })
}

/// Formats an architecture or another addition to a name.
pub(super) fn in_brackets(text: &str) -> String {
    format!(" [{text}]")
}

/// Replaces underscores by spaces and capitalizes each word: `Latest Weekly`.
pub(super) fn title_case(text: &str) -> String {
    let mut within_word = false;
    let mut letter = |char: char| {
        let shown = if within_word { char.to_ascii_lowercase() } else { char.to_ascii_uppercase() };
        within_word = char.is_ascii_alphabetic();
        if shown == '_' { ' ' } else { shown }
    };
    text.chars().map(&mut letter).collect()
}

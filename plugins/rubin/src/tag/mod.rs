//! The tags of lab images: the properties of an image that a tag states, its name for users, and the order of tags.
//!
//! The scheme is that of the Rubin Science Platform (SQR-059), as Nublado 15.1 reads it.

mod grammar;
mod kind;
mod order;
mod suffixes;
mod version;

use std::cmp::Ordering;

pub(crate) use kind::Kind;
pub(crate) use version::Version;

use crate::date::Date;

/// A tag, and the properties of the image that it states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    text: String,
    pub(crate) kind: Kind,
    /// The name that is shown to people.
    pub(crate) name: String,
    /// The version; `None` in tags of no known form.
    pub(crate) version: Option<Version>,
    /// The name within a tag without a version, before its cycle and architecture.
    base: Option<String>,
    /// The number of the interfaces with which the telescope's software was built (SAL).
    pub(crate) cycle: Option<u64>,
    cycle_build: Option<u64>,
    pub(crate) rsp_build: Option<u64>,
    extra: Option<String>,
    pub(crate) architecture: Option<String>,
    /// The day of a daily, or the Thursday of a weekly.
    pub(crate) date: Option<Date>,
}

impl Tag {
    /// Reads a tag. Every text is a tag; a text of no known form is [`Kind::Unknown`].
    pub(crate) fn parse(text: &str) -> Self {
        grammar::parse(text)
    }

    /// Reads a tag that the site lists as an alias.
    pub(crate) fn alias(text: &str) -> Self {
        grammar::parse_alias(text)
    }

    fn named(kind: Kind, name: String) -> Self {
        Self {
            text: String::new(),
            kind,
            name,
            version: None,
            base: None,
            cycle: None,
            cycle_build: None,
            rsp_build: None,
            extra: None,
            architecture: None,
            date: None,
        }
    }

    /// The tag itself.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The parts that only the order and the name use, for tests.
    #[cfg(test)]
    pub(crate) fn parts(&self) -> (Option<&str>, Option<u64>, Option<&str>) {
        (self.base.as_deref(), self.cycle_build, self.extra.as_deref())
    }

    /// True if the tag says nothing about its image, so another tag of the same image explains it.
    pub(crate) fn may_be_alias(&self) -> bool {
        matches!(self.kind, Kind::Alias | Kind::Unknown)
    }

    /// True for versions of releases and candidates. The versions of weeklies and dailies are dates.
    pub(crate) fn has_release_version(&self) -> bool {
        self.version.is_some() && self.date.is_none()
    }

    /// The order of the menu: by type, then the newest first.
    pub(crate) fn newest_first(&self, other: &Self) -> Ordering {
        order::newest_first(self, other)
    }

    /// Makes this tag an alias of `target`. The alias takes over the target's cycle, date and architecture, and names
    /// the target, as in `Latest Weekly (Weekly 2021_22, RSP Build 19)`. An architecture of both is named once.
    pub(crate) fn become_alias_of(&mut self, target: &Self) {
        self.kind = Kind::Alias;
        self.cycle = target.cycle;
        self.date = self.date.or(target.date);
        if self.architecture.is_none() {
            self.architecture.clone_from(&target.architecture);
        }
        let architecture = self.architecture.as_deref().map(grammar::in_brackets).unwrap_or_default();
        let explained = target.name.strip_suffix(&architecture).unwrap_or(&target.name);
        let explained = explained.replace(" (", ", ").replace(')', "");
        let own = grammar::title_case(self.base.as_deref().unwrap_or(&self.text));
        self.name = format!("{own} ({explained}){architecture}");
    }
}

#[cfg(test)]
mod tests;

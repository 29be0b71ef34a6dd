//! The merged settings of all blueprints of a lab.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::link::Link;
use super::{BlueprintSpec, Trail};
use crate::names::ObjectName;

/// The merged settings of all blueprints of a lab.
#[derive(Debug, Clone, PartialEq)]
pub struct Resolved {
    /// The chosen blueprint; `None` if only the platform's blueprints apply.
    pub chosen: Option<ObjectName>,
    /// All blueprints, in the order in which they are merged.
    pub consists_of: Vec<ObjectName>,
    /// The merged spec.
    pub spec: BlueprintSpec,
    /// For each field (`image`, `env.SIZE`, `volumes.data`), the trail of the blueprint that decided it.
    pub sources: BTreeMap<String, Trail>,
    /// Fields on which two blueprints disagree although neither extends the other.
    pub overlaps: Vec<Overlap>,
    /// The fields that only the platform decided. They are defaults: the user's choices take precedence over them.
    pub(super) defaults: BTreeSet<String>,
}

/// A field on which two blueprints disagree although neither extends the other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The field.
    pub field: String,
    /// The trail of the blueprint whose value is not used.
    pub earlier: Trail,
    /// The trail of the blueprint whose value is used.
    pub later: Trail,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} counts, and not {}", self.field, self.later, self.earlier)
    }
}

impl Resolved {
    /// Returns the name of the chosen blueprint, or the names of the platform's.
    pub fn label(&self) -> String {
        match &self.chosen {
            Some(chosen) => chosen.to_string(),
            None => self.consists_of.iter().map(ObjectName::as_str).collect::<Vec<_>>().join(", "),
        }
    }

    /// Merges the links, the first `of_platform` of which are the platform's.
    pub(super) fn merge(chosen: Option<&ObjectName>, links: &[Link<'_>], of_platform: usize) -> Self {
        let mut merged = Merged { links, ..Merged::default() };
        for at in 0..links.len() {
            merged.add(at);
        }
        let Merged { mut spec, decided_by, overlaps, .. } = merged;
        let defaults = decided_by.iter().filter(|(_, at)| **at < of_platform);
        let defaults = defaults.map(|(field, _)| field.clone()).collect();
        let sources = decided_by.into_iter().map(|(field, at)| (field, links[at].trail.clone())).collect();
        let named = chosen.and_then(|chosen| links.iter().find(|link| link.name == chosen));
        spec.display_name = named.and_then(|link| link.spec.display_name.clone());
        spec.description = named.and_then(|link| link.spec.description.clone());
        Self {
            chosen: chosen.cloned(),
            consists_of: links.iter().map(|link| link.name.clone()).collect(),
            spec,
            sources,
            overlaps,
            defaults,
        }
    }
}

/// The merge so far.
#[derive(Default)]
struct Merged<'a> {
    links: &'a [Link<'a>],
    spec: BlueprintSpec,
    /// The index of the link that decided each field.
    decided_by: BTreeMap<String, usize>,
    overlaps: Vec<Overlap>,
}

impl Merged<'_> {
    fn add(&mut self, at: usize) {
        let spec = self.links[at].spec;
        if let Some(image) = &spec.image {
            let differs = self.spec.image.as_ref().is_some_and(|before| before != image);
            self.decide("image".to_owned(), at, differs);
            self.spec.image = Some(image.clone());
        }
        if let Some(size) = &spec.size {
            let differs = self.spec.size.as_ref().is_some_and(|before| before != size);
            self.decide("size".to_owned(), at, differs);
            self.spec.size = Some(size.clone());
        }
        for (name, value) in &spec.options {
            let before = self.spec.options.insert(name.clone(), value.clone());
            self.decide(format!("options.{name}"), at, before.is_some_and(|before| before != *value));
        }
        for (name, value) in &spec.env {
            let before = self.spec.env.insert(name.clone(), value.clone());
            self.decide(format!("env.{name}"), at, before.is_some_and(|before| before != *value));
        }
        for volume in &spec.volumes {
            let before = put(&mut self.spec.volumes, volume, |volume| &volume.name);
            self.decide(
                format!("volumes.{}", volume.name),
                at,
                before.is_some_and(|before| before != *volume),
            );
        }
        for init in &spec.init_containers {
            let before = put(&mut self.spec.init_containers, init, |init| &init.name);
            self.decide(
                format!("initContainers.{}", init.name),
                at,
                before.is_some_and(|before| before != *init),
            );
        }
        for package in &spec.packages.pip {
            if !self.spec.packages.pip.contains(package) {
                self.spec.packages.pip.push(package.clone());
                self.decide(format!("packages.pip.{package}"), at, false);
            }
        }
    }

    /// Notes the link that decides a field. `differs` is true if the field had another value before.
    fn decide(&mut self, field: String, at: usize, differs: bool) {
        let before = self.decided_by.insert(field.clone(), at);
        if let (Some(before), true) = (before, differs)
            && !self.extends(at, before)
        {
            let (earlier, later) = (self.links[before].trail.clone(), self.links[at].trail.clone());
            self.overlaps.push(Overlap { field, earlier, later });
        }
    }

    /// Returns true if one link extends the other, directly or not.
    fn extends(&self, at: usize, other: usize) -> bool {
        let direct = self.links[at].spec.extends.iter();
        direct
            .filter_map(|parent| self.links.iter().position(|link| link.name == parent))
            .any(|parent| parent == other || parent < at && self.extends(parent, other))
    }
}

/// Replaces the item of the same name, or adds the item at the end. Returns the replaced item.
fn put<T: Clone>(items: &mut Vec<T>, item: &T, name: fn(&T) -> &String) -> Option<T> {
    if let Some(known) = items.iter_mut().find(|known| name(known) == name(item)) {
        return Some(std::mem::replace(known, item.clone()));
    }
    items.push(item.clone());
    None
}

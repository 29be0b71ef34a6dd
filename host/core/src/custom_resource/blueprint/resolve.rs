//! Finds all blueprints that a blueprint extends, and merges them.

use super::link::Link;
use super::{Library, Resolved, Trail};
use crate::names::ObjectName;

/// Largest number of blueprints that may extend each other in a row.
const MAX_DEPTH: usize = 8;
/// Largest number of blueprints of which a lab may consist.
const MAX_BLUEPRINTS: usize = 32;

/// The reason why a blueprint cannot be resolved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ResolveError {
    /// The user may not choose a blueprint of this name, or there is none.
    #[error("there is no blueprint `{name}` that you may choose{}", listed(.choices))]
    NotOffered {
        /// The requested name.
        name: ObjectName,
        /// The blueprints that the user may choose.
        choices: Vec<ObjectName>,
    },
    /// A blueprint extends one that does not exist.
    #[error("there is no blueprint `{missing}` ({trail})")]
    Missing {
        /// The name of the missing blueprint.
        missing: ObjectName,
        /// The trail by which the name was reached.
        trail: Trail,
    },
    /// A blueprint extends itself, directly or through others.
    #[error("the blueprints extend each other in a circle: {0}")]
    Circle(Trail),
    /// Too many blueprints extend each other in a row.
    #[error("more than {MAX_DEPTH} blueprints extend each other: {0}")]
    TooDeep(Trail),
    /// The lab would consist of too many blueprints.
    #[error("a lab may consist of {MAX_BLUEPRINTS} blueprints, and there are more: {0}")]
    TooMany(Trail),
}

fn listed(choices: &[ObjectName]) -> String {
    if choices.is_empty() {
        return "; there are none".to_owned();
    }
    let names: Vec<_> = choices.iter().map(|name| format!("`{name}`")).collect();
    format!("; there are {}", names.join(", "))
}

impl Library {
    /// Resolves the blueprints of a lab of a member of `groups`: the platform's blueprints, and above them the chosen
    /// one with all that it extends. Returns `None` if there is neither.
    pub fn resolve(
        &self,
        chosen: Option<&ObjectName>,
        groups: &[String],
    ) -> Result<Option<Resolved>, ResolveError> {
        let mut links = Vec::new();
        let platform = self.all().filter(|(_, spec)| spec.platform && spec.is_for(groups));
        for (name, _) in platform {
            self.follow(name, &Trail::new(&[]), &mut links)?;
        }
        let of_platform = links.len();
        if let Some(chosen) = chosen {
            self.require_choice(chosen, groups)?;
            self.follow(chosen, &Trail::new(&[]), &mut links)?;
        }
        Ok((!links.is_empty()).then(|| Resolved::merge(chosen, &links, of_platform)))
    }

    /// Refuses a blueprint that a member of these groups may not choose.
    pub(super) fn require_choice(&self, name: &ObjectName, groups: &[String]) -> Result<(), ResolveError> {
        if self.choices(groups).any(|(choice, _)| choice == name) {
            return Ok(());
        }
        Err(self.not_offered(name, groups))
    }

    pub(super) fn not_offered(&self, name: &ObjectName, groups: &[String]) -> ResolveError {
        let choices = self.choices(groups).map(|(name, _)| name.clone()).collect();
        ResolveError::NotOffered { name: name.clone(), choices }
    }

    /// Returns the blueprint and all that it extends. Each occurs once, before those that extend it.
    pub(super) fn chain(&self, name: &ObjectName) -> Result<Vec<Link<'_>>, ResolveError> {
        let mut links = Vec::new();
        self.follow(name, &Trail::new(&[]), &mut links)?;
        Ok(links)
    }

    fn follow<'a>(
        &'a self,
        name: &ObjectName,
        from: &Trail,
        links: &mut Vec<Link<'a>>,
    ) -> Result<(), ResolveError> {
        let trail = from.then(name);
        if from.contains(name) {
            return Err(ResolveError::Circle(trail));
        }
        if trail.len() > MAX_DEPTH {
            return Err(ResolveError::TooDeep(trail));
        }
        if links.iter().any(|link| link.name == name) {
            return Ok(());
        }
        let Some((name, spec)) = self.entry(name) else {
            return Err(ResolveError::Missing { missing: name.clone(), trail });
        };
        for parent in &spec.extends {
            self.follow(parent, &trail, links)?;
        }
        if links.len() >= MAX_BLUEPRINTS {
            return Err(ResolveError::TooMany(trail));
        }
        links.push(Link { name, spec, trail });
        Ok(())
    }
}

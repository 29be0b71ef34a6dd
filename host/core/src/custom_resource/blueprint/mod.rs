//! Blueprints: named descriptions of labs, for courses, projects and teams. Policies take precedence over them: a
//! policy's answer about a lab replaces the settings of a blueprint, and a blueprint gets no grants.

mod check;
mod choice;
mod extended;
mod foreign;
mod library;
mod link;
mod object;
mod package;
mod resolve;
mod resolved;
mod spec;
#[cfg(test)]
mod tests;
mod trail;
mod volume;

pub use check::InvalidBlueprint;
pub use choice::{CHOICE, REPOSITORY};
pub use extended::{ExtendedLibrary, UnusableBlueprint};
pub use foreign::{ForeignBlueprint, NotForForeign};
pub use library::Library;
pub use object::{BlueprintObject, blueprint_definition};
pub use package::Package;
pub use resolve::ResolveError;
pub use resolved::{Overlap, Resolved};
pub use spec::{
    BlueprintInit, BlueprintMount, BlueprintSpec, BlueprintVolume, ClaimName, EmptyDir, Export, MapName,
    Packages,
};
pub use trail::Trail;
pub use volume::VolumeFiles;

//! Custom resources of the service's API group: their objects, and their `CustomResourceDefinition`s.

mod definition;
mod object;

pub(crate) use definition::definition;
pub use object::{Kind, Object};

//! Custom resources of the service's API group: their objects, and their `CustomResourceDefinition`s.

pub mod api_group;
pub mod blueprint;
pub mod condition;
pub mod environment;
pub mod structural_schema;

mod definition;
mod object;

pub(crate) use definition::definition;
pub use object::{Kind, Object};

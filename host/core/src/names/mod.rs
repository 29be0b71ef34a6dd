//! The names of users and servers in JupyterHub, and the names that Kubernetes allows for objects.
//!
//! Every name is parsed once, where it enters the service, into a type that holds only valid names. Templates are
//! parsed once, when the configuration is loaded; the text that they render is never parsed as a template again.
//!
//! The field names, slug schemes and template language are KubeSpawner's, so that existing volumes are found by their
//! names.

pub mod lab;
pub mod labels;
pub mod spawn_key;

mod child;
mod config;
mod env_name;
mod field;
mod invalid;
pub mod kubespawner;
mod lab_names;
mod label;
mod object_name;
mod parsed;
mod problem;
#[cfg(test)]
mod properties;
mod repr;
mod scheme;
mod slug;
mod spec;
mod template;
mod templates;
mod tree;
mod user;
#[cfg(test)]
mod vectors;
mod worker_group;

pub use child::ChildName;
pub use config::NamesConfig;
pub use env_name::EnvName;
pub use field::{Field, Fields, TemplateScope};
pub use invalid::{InvalidName, Problem};
pub use lab_names::{KeptNames, LabNames};
pub use label::{LabelKey, LabelValue};
pub use object_name::{DnsLabel, NamespaceName, ObjectName};
pub use problem::{NameError, TemplateError, TemplateProblem};
pub use scheme::{Compat, Slug, SlugScheme};
pub(crate) use slug::{extract, is_object};
pub use template::Template;
pub use templates::NameTemplates;
pub use tree::TemplateTree;
pub use user::{ServerName, Username};
pub use worker_group::WorkerGroupName;

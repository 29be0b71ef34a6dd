//! Names: what JupyterHub calls people and servers, and what Kubernetes lets objects be called.
//!
//! Every name is parsed once, at the border, into a type that cannot hold a bad one.

mod env_name;
mod invalid;
mod label;
mod object_name;
mod parsed;
mod user;

pub use env_name::EnvName;
pub use invalid::{InvalidName, Problem};
pub use label::{LabelKey, LabelValue};
pub use object_name::{DnsLabel, NamespaceName, ObjectName};
pub use user::{ServerName, Username};

//! Reads from container registries.

mod artifact;
mod connection;
mod credentials;
mod error;
mod repository;

pub use artifact::{Artifact, Artifacts};
pub use error::RegistryError;
pub use repository::RepositoryReader;

//! Reads from container registries, and pushes artifacts to them.

mod artifact;
mod connection;
mod credentials;
mod error;
pub mod inventory;
mod new_artifact;
mod repository;
mod signatures;
mod upload;

pub use artifact::{Artifact, Artifacts};
pub use error::{RegistryError, Setting};
pub use new_artifact::NewArtifact;
pub use repository::RepositoryReader;
pub use signatures::SIGNATURE_PREDICATE;
pub use signatures::{FoundSignatures, StoredSignature};

use serde::{Deserialize, Serialize};

use crate::policy::{Author, FieldError};

/// The party that can correct a rejected spawn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RejectionBlame {
    /// The policy's author, or the operator who configured it: its answer cannot be used.
    Policy(String),
    /// The caller: other options would work.
    Request,
    /// The operator: the service's configuration does not suit this user or this cluster.
    Operator,
}

/// A refused spawn, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SpawnRejected {
    /// The party that can correct the spawn.
    pub blame: RejectionBlame,
    /// One sentence with the policy's name and the first error.
    pub message: String,
    /// All errors, by field. With [`RejectionBlame::Policy`] a field is a path into the policy's answer, with
    /// [`RejectionBlame::Request`] one into the request (`env.NAME`, `options`), with [`RejectionBlame::Operator`] a
    /// key of the configuration.
    pub details: Vec<FieldError>,
}

impl SpawnRejected {
    /// Rejects a spawn because the answer of `author` cannot be used. `details` must not be empty.
    pub(super) fn by(author: &Author, details: Vec<FieldError>) -> Self {
        let first = first(&details);
        let (blame, message) = match author {
            Author::Policy(policy) => {
                let message = format!("the answer of the policy `{policy}` cannot be used: {first}");
                (RejectionBlame::Policy(policy.clone()), message)
            }
            Author::Blueprint(name) => {
                (RejectionBlame::Operator, format!("the blueprint `{name}` cannot be used: {first}"))
            }
        };
        Self { blame, message, details }
    }

    /// Rejects a spawn because the request cannot be fulfilled as it is.
    pub(super) fn request(details: Vec<FieldError>) -> Self {
        Self { blame: RejectionBlame::Request, message: first(&details), details }
    }

    /// Rejects a spawn because the configuration does not allow this lab.
    pub(super) fn operator(field: impl Into<String>, message: impl Into<String>) -> Self {
        let details = vec![FieldError::new(field, message)];
        Self { blame: RejectionBlame::Operator, message: first(&details), details }
    }
}

fn first(details: &[FieldError]) -> String {
    details.first().map(ToString::to_string).unwrap_or_default()
}

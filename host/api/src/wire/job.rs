//! The answer about an operation that was asked for by its id.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::names::spawn_key::ChildKind;
use wasmspawner_core::record::operation_record::OperationRecord;
use wasmspawner_core::users::access::Permit;

use super::operation::Operation;

/// An operation, and the lab that it is about.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Job {
    /// The lab's user.
    username: String,
    /// The name of the user's server; empty for the default server.
    server: String,
    /// The lab's kernel or Dask pool that the operation is about; null for the lab itself.
    child: Option<Child>,
    #[serde(flatten)]
    operation: Operation,
}

/// What a lab has started.
#[derive(Debug, Serialize, ToSchema)]
struct Child {
    kind: JobChildKind,
    /// Its name.
    name: String,
}

/// A kind of what labs start.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
enum JobChildKind {
    Kernel,
    DaskPool,
}

impl Job {
    /// Describes the operation with the details that this caller may see.
    pub(crate) fn from_record(record: &OperationRecord, permit: Permit) -> Self {
        let child = record.key.child.as_ref().map(|child| Child {
            kind: match child.kind {
                ChildKind::Kernel => JobChildKind::Kernel,
                ChildKind::DaskPool => JobChildKind::DaskPool,
            },
            name: child.name.to_string(),
        });
        Self {
            username: record.key.lab.user.to_string(),
            server: record.key.lab.server.to_string(),
            child,
            operation: Operation::from_record(record, permit),
        }
    }
}

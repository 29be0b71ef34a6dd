//! A user's turn to have a spawn approved. Spawns of one user are approved one after the other, so that the second one
//! counts the first.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, oneshot};
use tokio::time::Instant;
use wasmspawner_core::names::Username;
use wasmspawner_core::names::spawn_key::SpawnKey;

use super::Labs;
use super::answer::{answer_by, answered};
use super::message::{Message, Waiting};
use crate::decide::approve::Approved;
use crate::errors::SpawnError;
use wasmspawner_kubernetes::records;
use wasmspawner_telemetry::trace::Cause;

/// A user's turn.
pub(crate) struct Turn {
    permit: Option<OwnedSemaphorePermit>,
    /// The time that the request has waited for its turn.
    waited: Duration,
}

impl Labs {
    /// Waits for the user's turn.
    pub(crate) async fn turn_of(&self, user: &Username) -> Result<Turn, SpawnError> {
        let asked = Instant::now();
        let permit = tokio::time::timeout(records::TRY_FOR, self.user_lock(user)).await;
        Ok(Turn { permit: permit.map_err(|_| SpawnError::NoTime)?, waited: asked.elapsed() })
    }

    /// Sends an approved spawn to its driver, and waits until it has begun.
    pub(crate) async fn begin(
        &self,
        key: &SpawnKey,
        approved: Approved,
        turn: Turn,
    ) -> Result<(), SpawnError> {
        self.send_in_turn(key, turn, |waiting| Message::Spawn(Arc::new(approved), waiting)).await
    }

    /// Sends an approved request to the driver, and waits for the answer. The turn ends when the request has begun.
    pub(crate) async fn send_in_turn(
        &self,
        key: &SpawnKey,
        turn: Turn,
        message: impl FnOnce(Waiting) -> Message,
    ) -> Result<(), SpawnError> {
        // The time that the policies took does not reduce the time for the cluster.
        let until = answer_by() - turn.waited;
        let (reply, answer) = oneshot::channel();
        self.send(key, message(Waiting { until, reply, cause: Cause::current(), turn: turn.permit }));
        answered(answer, until).await
    }
}

//! Mounting a pod's volumes.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::Worker;
use crate::kubelet::{
    event::Happening,
    restart::{Backoff, BackoffOptions},
};

impl Worker {
    /// Until every volume is there. False when the pod was asked to end before.
    pub(super) async fn mount(&self, asked: &CancellationToken) -> bool {
        let mut backoff =
            Backoff::new(BackoffOptions { base: Duration::from_millis(500), max: Duration::from_secs(122) });
        tokio::select! {
            () = asked.cancelled() => false,
            () = async {
                while let Err(message) = self.runtime.mount(self).await {
                    self.journal.write(Happening::warning("FailedMount", message));
                    tokio::time::sleep(backoff.advance()).await;
                }
            } => true,
        }
    }
}

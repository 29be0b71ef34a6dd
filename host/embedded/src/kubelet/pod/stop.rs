//! The request to the containers of a pod to end.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

#[derive(Debug, Default)]
pub(super) struct Stop {
    /// Cancelled when the containers are to end.
    pub(super) asked: CancellationToken,
    deadline: watch::Sender<Option<Instant>>,
}

impl Stop {
    /// Gives the containers this long from now. A shorter time may follow.
    pub(super) fn now(&self, grace: Duration) {
        self.deadline.send_replace(Some(Instant::now() + grace));
        self.asked.cancel();
    }

    /// Waits until the containers have had their time.
    pub(super) async fn grace_is_over(&self) {
        let mut deadline = self.deadline.subscribe();
        loop {
            let at = *deadline.borrow_and_update();
            let over = async {
                match at {
                    Some(at) => tokio::time::sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => return,
                Ok(()) = deadline.changed() => {}
            }
        }
    }
}

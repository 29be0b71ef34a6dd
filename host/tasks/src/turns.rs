//! Turns at something that answers slowly, such as another service.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::timeout;

/// A limit on simultaneous requests. Callers wait in the order in which they came, for as long as turns end. If none ends
/// for some time, the other side is stuck, and they give up.
pub struct Turns {
    slots: Semaphore,
    /// The number of turns that have ended, which may overflow.
    ended: AtomicUsize,
    stuck_after: Duration,
}

/// A turn, until it is dropped. It holds what the caller needed first.
pub struct Turn<'a, F> {
    _first: F,
    _slot: SemaphorePermit<'a>,
    turns: &'a Turns,
}

impl Turns {
    /// Creates turns of which `at_once` can be taken at a time. Callers give up if none has ended for `stuck_after`.
    pub fn new(at_once: usize, stuck_after: Duration) -> Self {
        Self { slots: Semaphore::new(at_once), ended: AtomicUsize::new(0), stuck_after }
    }

    /// Waits for `first`, such as a permit of the caller's address, and then for a turn. Returns `None` if turns have
    /// stopped to end.
    pub async fn take<F>(&self, first: impl Future<Output = F>) -> Option<Turn<'_, F>> {
        let turn = async { (first.await, self.slots.acquire().await.ok()) };
        let mut turn = std::pin::pin!(turn);
        loop {
            let ended = self.ended.load(Ordering::Relaxed);
            match timeout(self.stuck_after, &mut turn).await {
                Ok((first, slot)) => return Some(Turn { _first: first, _slot: slot?, turns: self }),
                Err(_) if self.ended.load(Ordering::Relaxed) == ended => return None,
                Err(_) => {}
            }
        }
    }

    /// The number of turns that can be taken at once.
    pub fn free(&self) -> usize {
        self.slots.available_permits()
    }
}

impl<F> Drop for Turn<'_, F> {
    fn drop(&mut self) {
        self.turns.ended.fetch_add(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use tokio::time::{Instant, sleep};

    use super::*;

    const STUCK_AFTER: Duration = Duration::from_secs(5);

    #[tokio::test(start_paused = true)]
    async fn callers_wait_in_order_for_as_long_as_turns_end() {
        let turns = Turns::new(2, STUCK_AFTER);
        let began = Instant::now();
        let served = join_all((0..100).map(|_| async {
            let turn = turns.take(async {}).await;
            sleep(Duration::from_secs(4)).await;
            turn.map(|_| began.elapsed().as_secs())
        }))
        .await;
        let expected: Vec<_> = (0..100).map(|n| Some(4 * (n / 2 + 1))).collect();
        assert_eq!(served, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn callers_give_up_once_no_turn_ends() {
        let turns = Turns::new(1, STUCK_AFTER);
        let _held = turns.take(async {}).await;
        let began = Instant::now();
        assert!(turns.take(async {}).await.is_none());
        assert_eq!(began.elapsed(), STUCK_AFTER);
    }
}

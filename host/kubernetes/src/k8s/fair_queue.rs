//! A queue in which users take turns: a hundred servers of one user do not delay the only server of another.

use std::collections::{HashMap, VecDeque};

use tokio::sync::oneshot;
use wasmspawner_core::names::Username;

tokio::task_local! {
    /// The user for whose lab this task makes requests.
    static USER: Username;
}

/// Runs `work` so that its requests count as made for a lab of this user. Requests of tasks that `work` spawns are not
/// included.
pub async fn on_behalf_of<W: Future>(user: Username, work: W) -> W::Output {
    USER.scope(user, work).await
}

/// Waiting requests, by user. All requests that are for no particular user share one turn.
#[derive(Default)]
pub(super) struct FairQueue {
    waiting: HashMap<Option<Username>, VecDeque<oneshot::Sender<()>>>,
    /// The users who have waiting requests, each once, in the order of their turns.
    turns: VecDeque<Option<Username>>,
}

impl FairQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    /// Appends a request to the queue of the user for whom this task works. `go` is completed when the request may
    /// proceed.
    pub(super) fn push(&mut self, go: oneshot::Sender<()>) {
        self.push_for(USER.try_with(Username::clone).ok(), go);
    }

    fn push_for(&mut self, user: Option<Username>, go: oneshot::Sender<()>) {
        let waiting = self.waiting.entry(user.clone()).or_default();
        if waiting.is_empty() {
            self.turns.push_back(user);
        }
        waiting.push_back(go);
    }

    /// Lets the next request proceed. Returns false if none is waiting any more.
    pub(super) fn release_next(&mut self) -> bool {
        while let Some(user) = self.turns.pop_front() {
            let Some(waiting) = self.waiting.get_mut(&user) else { continue };
            let gone = std::iter::from_fn(|| waiting.pop_front()).any(|go| go.send(()).is_ok());
            if waiting.is_empty() {
                self.waiting.remove(&user);
            } else {
                self.turns.push_back(user);
            }
            if gone {
                return true;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(name: &str) -> Username {
        Username::parse(name).unwrap()
    }

    #[test]
    fn users_take_turns_and_a_cancelled_wait_uses_no_turn() {
        let mut queue = FairQueue::default();
        let mut turns: Vec<(&str, oneshot::Receiver<()>)> = Vec::new();
        let names = ["ada", "ada", "ada", "grace", "", "grace", "edsger"];
        for name in names {
            let (go, turn) = oneshot::channel();
            queue.push_for((!name.is_empty()).then(|| user(name)), go);
            turns.push((name, turn));
        }
        // One of ada's callers has stopped waiting.
        turns.remove(1);
        let mut order = Vec::new();
        while queue.release_next() {
            let at = turns.iter_mut().position(|(_, turn)| turn.try_recv().is_ok()).unwrap();
            order.push(turns.remove(at).0);
        }
        assert_eq!(order, ["ada", "grace", "", "edsger", "ada", "grace"]);
        assert!(queue.is_empty() && queue.waiting.is_empty());
    }

    #[tokio::test]
    async fn a_request_is_queued_under_the_user_of_its_task() {
        let mut queue = FairQueue::default();
        on_behalf_of(user("ada"), async { queue.push(oneshot::channel().0) }).await;
        queue.push(oneshot::channel().0);
        assert_eq!(queue.turns, [Some(user("ada")), None]);
    }
}

//! A container that only looks as if it ran.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::kubelet::runtime::Exit;

/// One run of a simulated container.
#[derive(Debug)]
pub(crate) struct SimulatedRun {
    /// When and how it ends by itself.
    pub(crate) end: Option<(Instant, Exit)>,
    /// How long it takes to end after a signal.
    pub(crate) stop: Duration,
    /// Ignores every signal.
    pub(crate) stuck: Arc<AtomicBool>,
    pub(crate) asked: Option<Instant>,
}

impl SimulatedRun {
    pub(crate) async fn wait(&mut self) -> Exit {
        let stop = self.asked.map(|asked| (asked + self.stop, Exit::completed()));
        let next = match (self.end.clone(), stop) {
            (Some(own), Some(stop)) if own.0 <= stop.0 => Some(own),
            (own, stop) => stop.or(own),
        };
        match next {
            Some((at, exit)) => {
                tokio::time::sleep_until(at).await;
                exit
            }
            None => std::future::pending().await,
        }
    }

    pub(crate) fn terminate(&mut self) {
        if !self.stuck.load(Ordering::Relaxed) {
            self.asked.get_or_insert_with(Instant::now);
        }
    }

    pub(crate) fn kill(&mut self) {
        if !self.stuck.load(Ordering::Relaxed) {
            self.asked = None;
            self.end = Some((Instant::now(), Exit::of_code(137)));
        }
    }
}

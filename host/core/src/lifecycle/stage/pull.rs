//! Reads downloads of a container's image from events.

use jiff::Timestamp;

use super::event::{EventSubject, EventView};
use super::reason::Reason;

/// The downloads of one container's image, according to the events.
#[derive(Default)]
pub(super) struct Pulls<'a> {
    begun: u32,
    succeeded: u32,
    /// Number of failed downloads.
    pub(super) failed: u32,
    /// The time at which the last download began.
    pub(super) last_begun: Option<Timestamp>,
    /// The time at which a download last succeeded.
    pub(super) last_success: Option<Timestamp>,
    /// The reason why the last download failed.
    pub(super) failure: Option<&'a str>,
    /// The time at which a download first failed.
    pub(super) first_failure: Option<Timestamp>,
}

impl<'a> Pulls<'a> {
    /// Reads the downloads for the container of this name.
    pub(super) fn from_events(container: &str, events: &[EventView<'a>]) -> Self {
        let mut pulls = Self::default();
        for event in events.iter().filter(|event| event.about == EventSubject::Container(container)) {
            match event.known {
                Some(Reason::Pulling) => {
                    pulls.begun = pulls.begun.saturating_add(event.count);
                    pulls.last_begun = pulls.last_begun.max(event.last);
                }
                // An image that was on the node already has an event `Pulled`, but none `Pulling`.
                Some(Reason::Pulled) if event.message.contains("already present") => {
                    pulls.last_success = event.last;
                }
                Some(Reason::Pulled) => {
                    pulls.succeeded = pulls.succeeded.saturating_add(event.count);
                    pulls.last_success = event.last;
                }
                Some(Reason::Failed) if is_pull_failure(event.message) => {
                    pulls.failed = pulls.failed.saturating_add(event.count);
                    pulls.failure = Some(event.message);
                    pulls.first_failure = pulls.first_failure.into_iter().chain(event.first).min();
                }
                _ => {}
            }
        }
        pulls
    }

    /// Returns true while a download is under way. Counts are compared instead of times, because begin and end may have
    /// the same second as time.
    pub(super) fn is_open(&self) -> bool {
        self.begun > self.succeeded.saturating_add(self.failed)
    }

    /// Returns true if downloads failed and none succeeded. Events show this before the container's state does.
    pub(super) fn has_only_failed(&self) -> bool {
        self.failed > 0 && self.last_success.is_none() && !self.is_open()
    }
}

/// Returns true for messages of failed downloads. The reason `Failed` also has messages such as `Error: ErrImagePull`,
/// which repeat the failure, and messages about faults after the download.
pub(super) fn is_pull_failure(message: &str) -> bool {
    message.starts_with("Failed to pull image")
}

//! The `id:` of a server-sent event.

use std::fmt;
use std::str::FromStr;

use crate::names::lab::JobId;

/// The `id:` of an event, `<job id>-<n>`: the n-th entry (from 1) of an operation's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventId {
    /// The operation.
    pub job_id: JobId,
    /// Position in the operation's log, from 1.
    pub number: usize,
}

/// The text is not an event id of this service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an event id is a job id, `-` and a number")]
pub struct NotAnEventId;

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.job_id, self.number)
    }
}

impl FromStr for EventId {
    type Err = NotAnEventId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (job_id, number) = text.rsplit_once('-').ok_or(NotAnEventId)?;
        Ok(Self {
            job_id: job_id.parse().map_err(|_| NotAnEventId)?,
            number: number.parse().map_err(|_| NotAnEventId)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_id_survives_parsing_and_printing() {
        let id: EventId = "01890a5d-ac96-774b-bcce-b302099a8057-12".parse().unwrap();
        assert_eq!(id.number, 12);
        assert_eq!(id.to_string(), "01890a5d-ac96-774b-bcce-b302099a8057-12");
    }

    #[test]
    fn text_that_is_not_an_event_id_is_refused() {
        for text in [
            "",
            "-",
            "12",
            "x-12",
            "01890a5d-ac96-774b-bcce-b302099a8057",
            "01890a5d-ac96-774b-bcce-b302099a8057-x",
        ] {
            assert!(text.parse::<EventId>().is_err(), "{text:?}");
        }
    }
}

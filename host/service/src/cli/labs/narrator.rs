use serde::Deserialize;

use super::event::Event;
use crate::cli::plain::plain;

/// Turns the events of an operation into lines for a terminal.
#[derive(Debug, Default)]
pub(super) struct Narrator {
    percent: u8,
}

/// The outcome of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Complete,
    Failed,
}

#[derive(Deserialize)]
struct Stage {
    progress: u8,
}

impl Narrator {
    /// Returns the line to print for an event, or `None` for an event that only changes the percentage.
    pub(super) fn line(&mut self, event: &Event) -> Option<String> {
        let text = plain(&event.data);
        match event.kind.as_str() {
            "progress" => self.percent = event.data.parse().unwrap_or(self.percent),
            "stage" => {
                self.percent =
                    serde_json::from_str::<Stage>(&event.data).map_or(self.percent, |stage| stage.progress);
            }
            "info" => return Some(self.with_percent(&text)),
            "error" => return Some(self.with_percent(&format!("error: {text}"))),
            "complete" => {
                self.percent = 100;
                return Some(self.with_percent(if text.is_empty() { "complete" } else { &text }));
            }
            "failed" => return Some(self.with_percent(&format!("failed: {text}"))),
            _ => {}
        }
        None
    }

    fn with_percent(&self, text: &str) -> String {
        format!("{:>3}%  {text}", self.percent)
    }
}

impl End {
    /// Returns the outcome of the operation if this event is its last.
    pub(super) fn from_event(event: &Event) -> Option<Self> {
        match event.kind.as_str() {
            "complete" => Some(Self::Complete),
            "failed" => Some(Self::Failed),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_event_of_a_spawn_is_printed_as_one_line() {
        let mut narrator = Narrator::default();
        let lines: Vec<_> = [
            ("info", "Starting the lab"),
            ("stage", r#"{"stage":"Pulling","reason":"Pulling","message":"m","progress":35,"at":"x"}"#),
            ("info", "Pulling the image"),
            ("progress", "60"),
            ("error", "a probe failed\n\u{1b}[2J"),
            ("progress", "nonsense"),
            ("unheard-of", "x"),
            ("complete", ""),
            ("failed", "out of memory"),
        ]
        .into_iter()
        .filter_map(|(kind, data)| {
            narrator.line(&Event { id: String::new(), kind: kind.into(), data: data.into() })
        })
        .collect();
        assert_eq!(
            lines,
            [
                "  0%  Starting the lab",
                " 35%  Pulling the image",
                " 60%  error: a probe failed\\n\\u{1b}[2J",
                "100%  complete",
                "100%  failed: out of memory",
            ]
        );
    }
}

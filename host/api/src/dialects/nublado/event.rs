//! Writes the events of an operation with the bytes of Nublado's controller: lines end with CR LF, and the data is JSON as
//! Python writes it.

use std::fmt::Write as _;

use wasmspawner_core::lifecycle::progress::Entry;

/// A comment that is sent when there is no event for 15 s.
pub(super) const KEEP_ALIVE: &str = ": ping\r\n\r\n";

/// Writes the events of one stream. Nublado has no events of their own for progress and stages: the percentage is in the
/// next message.
#[derive(Debug, Default)]
pub(super) struct EventWriter {
    progress: u8,
    /// True after the last event. An error of the running lab may follow it in the log.
    is_over: bool,
}

impl EventWriter {
    /// Appends the event for an entry, if it has one.
    pub(super) fn write(&mut self, frames: &mut String, entry: &Entry) {
        if self.is_over {
            return;
        }
        self.is_over = entry.is_last();
        let (kind, message, progress) = match entry {
            Entry::Progress(percent) => return self.progress = *percent,
            Entry::Stage(report) => return self.progress = self.progress.max(report.progress),
            Entry::Info(text) => ("info", text, self.progress),
            Entry::Error(text) => ("error", text, self.progress),
            Entry::Complete(text) => ("complete", text, 0),
            Entry::Failed(text) => ("failed", text, 0),
        };
        let message = python_json(message);
        // Writing to a String cannot fail.
        let _ = match progress {
            0 => write!(frames, "event: {kind}\r\ndata: {{\"message\": {message}}}\r\n\r\n"),
            _ => write!(
                frames,
                "event: {kind}\r\ndata: {{\"message\": {message}, \"progress\": {progress}}}\r\n\r\n"
            ),
        };
    }
}

/// Writes a text as Python's `json.dumps` does: everything but ASCII is escaped.
fn python_json(text: &str) -> String {
    // Serializing a text cannot fail.
    let json = serde_json::to_string(text).unwrap_or_default();
    let mut units = [0; 2];
    json.chars().fold(String::with_capacity(json.len()), |mut escaped, character| {
        if character.is_ascii() {
            escaped.push(character);
        } else {
            for unit in character.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
        escaped
    })
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use wasmspawner_core::lifecycle::progress::StageReport;
    use wasmspawner_core::lifecycle::stage::Stage;

    use super::*;

    fn written(entries: &[Entry]) -> String {
        let mut writer = EventWriter::default();
        entries.iter().fold(String::new(), |mut frames, entry| {
            writer.write(&mut frames, entry);
            frames
        })
    }

    #[test]
    fn the_bytes_are_those_of_nublado() {
        let pulling = StageReport::new(Stage::Pulling, ("Pulling", "Pulling"), 35, Timestamp::UNIX_EPOCH);
        let spawn = [
            Entry::Info("Starting".into()),
            Entry::Progress(5),
            Entry::Info("Objects".into()),
            Entry::Stage(pulling),
            Entry::Error("Back-off \"pulling\"\nagain: é 🚀".into()),
            Entry::Complete("Ready".into()),
            Entry::Error("restarted".into()),
        ];
        let expected = concat!(
            "event: info\r\ndata: {\"message\": \"Starting\"}\r\n\r\n",
            "event: info\r\ndata: {\"message\": \"Objects\", \"progress\": 5}\r\n\r\n",
            "event: error\r\ndata: {\"message\": \"Back-off \\\"pulling\\\"\\nagain: \\u00e9 \\ud83d\\ude80\", \"progress\": 35}\r\n\r\n",
            "event: complete\r\ndata: {\"message\": \"Ready\"}\r\n\r\n",
        );
        assert_eq!(written(&spawn), expected);
        assert_eq!(
            written(&[Entry::Progress(9), Entry::Failed("no".into())]),
            "event: failed\r\ndata: {\"message\": \"no\"}\r\n\r\n"
        );
    }

    proptest::proptest! {
        #[test]
        fn no_text_can_add_an_event(text: String) {
            let frames = written(&[Entry::Info(text.clone())]);
            let data = frames.strip_prefix("event: info\r\ndata: ").unwrap().strip_suffix("\r\n\r\n").unwrap();
            proptest::prop_assert!(data.is_ascii() && !data.contains(['\r', '\n']));
            proptest::prop_assert_eq!(&serde_json::from_str::<serde_json::Value>(data).unwrap()["message"], &text);
        }
    }
}

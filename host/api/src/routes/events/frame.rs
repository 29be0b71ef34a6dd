//! Writes one event in the event-stream format (WHATWG HTML, "Server-sent events").

use std::fmt::Write as _;

use wasmspawner_core::lifecycle::progress::{Entry, EventId, LoggedEntry};
use wasmspawner_core::names::lab::JobId;

use crate::wire::StageReport;

/// Writes an event. `url` is that of a lab that has been started, and is a field of its own: `EventSource` ignores fields that
/// it does not know.
pub(super) fn write(frames: &mut String, job_id: JobId, logged: &LoggedEntry, url: Option<&str>) {
    let id = EventId { job_id, number: logged.number };
    // Writing to a String cannot fail.
    let _ = write!(frames, "id: {id}\nevent: {}\n", kind(&logged.entry));
    if let Some(url) = url.filter(|url| !url.contains(['\n', '\r'])) {
        let _ = writeln!(frames, "url: {url}");
    }
    match &logged.entry {
        Entry::Info(text) | Entry::Error(text) | Entry::Complete(text) | Entry::Failed(text) => {
            data(frames, text);
        }
        Entry::Progress(percent) => data(frames, &percent.to_string()),
        // A stage report holds only text, numbers and names, so serializing it cannot fail.
        Entry::Stage(report) => {
            data(frames, &serde_json::to_string(&StageReport::from(report)).unwrap_or_default());
        }
    }
    frames.push('\n');
}

fn kind(entry: &Entry) -> &'static str {
    match entry {
        Entry::Info(_) => "info",
        Entry::Error(_) => "error",
        Entry::Progress(_) => "progress",
        Entry::Stage(_) => "stage",
        Entry::Complete(_) => "complete",
        Entry::Failed(_) => "failed",
    }
}

/// Writes one `data` field per line, because a line break of any kind ends a field.
fn data(frames: &mut String, text: &str) {
    let text = text.replace("\r\n", "\n");
    for line in text.split(['\n', '\r']) {
        let _ = writeln!(frames, "data: {line}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use jiff::Timestamp;
    use wasmspawner_core::lifecycle::progress;
    use wasmspawner_core::lifecycle::stage::Stage;

    fn frame(entry: Entry) -> String {
        frame_with(entry, None)
    }

    fn frame_with(entry: Entry, url: Option<&str>) -> String {
        let mut frames = String::new();
        let job_id = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        write(&mut frames, job_id, &LoggedEntry { number: 3, at: Timestamp::UNIX_EPOCH, entry }, url);
        frames.strip_prefix("id: 01890a5d-ac96-774b-bcce-b302099a8057-3\n").unwrap().to_owned()
    }

    #[test]
    fn each_type_has_its_name_and_data() {
        assert_eq!(frame(Entry::Progress(25)), "event: progress\ndata: 25\n\n");
        assert_eq!(frame(Entry::Complete(String::new())), "event: complete\ndata: \n\n");
        let report = progress::StageReport {
            stage: Stage::Pulling,
            reason: "Pulling".into(),
            message: "a\nb".into(),
            progress: 35,
            at: Timestamp::UNIX_EPOCH,
        };
        let expected = r#"event: stage
data: {"stage":"Pulling","reason":"Pulling","message":"a\nb","progress":35,"at":"1970-01-01T00:00:00Z"}

"#;
        assert_eq!(frame(Entry::Stage(report)), expected);
    }

    #[test]
    fn a_url_is_a_field_of_its_own() {
        let ready = || Entry::Complete("Ready".into());
        let frame = frame_with(ready(), Some("http://10.2.3.4:8888/user/ada/"));
        assert_eq!(frame, "event: complete\nurl: http://10.2.3.4:8888/user/ada/\ndata: Ready\n\n");
        assert_eq!(frame_with(ready(), Some("http://x\ndata: y")), "event: complete\ndata: Ready\n\n");
    }

    #[test]
    fn no_text_can_add_a_field_or_an_event() {
        let hostile = "one\ntwo\r\nthree\rid: 9\n\nevent: complete";
        let expected =
            "event: error\ndata: one\ndata: two\ndata: three\ndata: id: 9\ndata: \ndata: event: complete\n\n";
        assert_eq!(frame(Entry::Error(hostile.into())), expected);
    }
}

//! A parser for server-sent events, as the WHATWG HTML standard defines them.

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Event {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) data: String,
}

/// Parses events from pieces of the stream. A piece may end anywhere, even inside a line.
#[derive(Debug, Default)]
pub(super) struct EventParser {
    line: Vec<u8>,
    event: Event,
    has_data: bool,
}

impl EventParser {
    /// Returns the events that `piece` completes.
    pub(super) fn push(&mut self, piece: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for &byte in piece {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.line);
                events.extend(self.end_of_line(String::from_utf8_lossy(&line).trim_end_matches('\r')));
            } else {
                self.line.push(byte);
            }
        }
        events
    }

    fn end_of_line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            let event = std::mem::take(&mut self.event);
            return std::mem::take(&mut self.has_data).then_some(event);
        }
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "id" => value.clone_into(&mut self.event.id),
            "event" => value.clone_into(&mut self.event.kind),
            "data" => {
                if std::mem::replace(&mut self.has_data, true) {
                    self.event.data.push('\n');
                }
                self.event.data.push_str(value);
            }
            // Comments only keep the connection alive, and `retry` is for browsers.
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "retry: 1000\n\n: still here\n\nid: j-1\nevent: info\ndata: one\ndata: é\n\n\
                          id: j-2\r\nevent: progress\r\ndata: 25\r\n\r\nid: j-3\nevent: complete\ndata: \n\nevent: cut";

    fn event(id: &str, kind: &str, data: &str) -> Event {
        Event { id: id.into(), kind: kind.into(), data: data.into() }
    }

    #[test]
    fn events_are_the_same_in_pieces_of_any_size() {
        let expected =
            [event("j-1", "info", "one\né"), event("j-2", "progress", "25"), event("j-3", "complete", "")];
        for size in [1, 2, 3, 7, 1000] {
            let mut parser = EventParser::default();
            let events: Vec<_> =
                STREAM.as_bytes().chunks(size).flat_map(|piece| parser.push(piece)).collect();
            assert_eq!(events, expected, "in pieces of {size}");
        }
    }
}

//! A reader of server-sent events, as the WHATWG HTML standard defines them.

use std::time::Duration;

use anyhow::Context as _;
use serde_json::Value;

/// The time limit for an event that a test waits for.
const BOUND: Duration = Duration::from_mins(1);

/// One event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The event's id.
    pub id: String,
    /// The event's type.
    pub kind: String,
    /// The event's data, with lines joined by `\n`.
    pub data: String,
}

/// A stream of events.
#[derive(Debug)]
pub struct Events {
    response: reqwest::Response,
    buffer: String,
    transcript: String,
}

impl Events {
    /// The events of an answer.
    pub fn from_response(response: reqwest::Response) -> Self {
        Self { response, buffer: String::new(), transcript: String::new() }
    }

    /// The headers of the answer.
    pub fn headers(&self) -> &http::HeaderMap {
        self.response.headers()
    }

    /// All bytes received so far.
    pub fn transcript(&self) -> &str {
        &self.transcript
    }

    /// The next event; `None` when the stream is closed.
    pub async fn next(&mut self) -> anyhow::Result<Option<Event>> {
        tokio::time::timeout(BOUND, self.read())
            .await
            .with_context(|| format!("no event came after {}", self.transcript))?
    }

    /// Reads until `text` has been received, in an event or a comment.
    pub async fn until(&mut self, text: &str) -> anyhow::Result<()> {
        let read = async {
            while !self.transcript.contains(text) {
                let chunk = self.response.chunk().await?.context("the stream was closed")?;
                self.buffer.push_str(std::str::from_utf8(&chunk)?);
                self.transcript.push_str(std::str::from_utf8(&chunk)?);
            }
            anyhow::Ok(())
        };
        tokio::time::timeout(BOUND, read).await.with_context(|| format!("{text:?} was not received"))?
    }

    /// The next event of this type.
    pub async fn next_of(&mut self, kind: &str) -> anyhow::Result<Event> {
        while let Some(event) = self.next().await? {
            if event.kind == kind {
                return Ok(event);
            }
        }
        anyhow::bail!("the stream was closed without {kind}: {}", self.transcript)
    }

    /// All events until the stream is closed.
    pub async fn to_end(&mut self) -> anyhow::Result<Vec<Event>> {
        let mut events = Vec::new();
        while let Some(event) = self.next().await? {
            events.push(event);
        }
        Ok(events)
    }

    async fn read(&mut self) -> anyhow::Result<Option<Event>> {
        loop {
            while let Some(end) = self.buffer.find("\n\n") {
                let event = parse(&self.buffer[..end]);
                self.buffer.drain(..end + 2);
                if event.is_some() {
                    return Ok(event);
                }
            }
            let Some(chunk) = self.response.chunk().await? else { return Ok(None) };
            let text = std::str::from_utf8(&chunk).context("a chunk ends inside a character")?;
            self.buffer.push_str(text);
            self.transcript.push_str(text);
        }
    }
}

/// Parses an event; `None` for a frame without data, such as a comment.
fn parse(frame: &str) -> Option<Event> {
    let field = |name: &str| {
        let lines = frame.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        lines.collect::<Vec<_>>()
    };
    let data = field("data");
    let one = |name| field(name).first().copied().unwrap_or_default().to_owned();
    (!data.is_empty()).then(|| Event { id: one("id"), kind: one("event"), data: data.join("\n") })
}

impl Event {
    /// The data of a `stage` event as JSON; `Null` for another event.
    pub fn report(&self) -> Value {
        if self.kind == "stage" { serde_json::from_str(&self.data).unwrap_or_default() } else { Value::Null }
    }
}

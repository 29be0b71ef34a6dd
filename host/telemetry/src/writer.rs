//! A log writer that never blocks: a slow or blocked reader of the log costs log lines, but does not delay requests.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use tracing_subscriber::fmt::MakeWriter;

/// The maximum number of lines that wait to be written; further ones are dropped.
const MAX_PENDING_LINES: usize = 8192;

/// The time that the process waits for the last lines when it ends.
const LAST_LINES: Duration = Duration::from_secs(1);

/// Passes lines to a thread that writes them.
#[derive(Clone)]
pub(super) struct NonBlocking {
    lines: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

/// A message to the writing thread.
enum Message {
    /// Write a line.
    Write(Vec<u8>),
    /// Report when all earlier lines are written.
    Report(Sender<()>),
}

/// Waits on drop until the last lines are written, but at most a second if the reader of the log is blocked.
#[derive(Debug)]
pub struct LastLines(SyncSender<Message>);

impl Drop for LastLines {
    fn drop(&mut self) {
        let (report, written) = channel();
        if self.0.try_send(Message::Report(report)).is_ok() {
            let _ = written.recv_timeout(LAST_LINES);
        }
    }
}

/// A line that is being formatted.
pub(super) struct Line<'a> {
    to: &'a NonBlocking,
    text: Vec<u8>,
}

impl NonBlocking {
    /// Starts the writing thread, which ends when the last handle is dropped.
    pub(super) fn start(target: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(MAX_PENDING_LINES);
        let dropped = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&dropped);
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_all(target, &waiting, &counter))?;
        Ok(Self { lines, dropped })
    }

    /// Returns the guard that the caller must keep until the process ends.
    pub(super) fn last_lines(&self) -> LastLines {
        LastLines(self.lines.clone())
    }
}

/// Writes lines on the writing thread. Ignores errors, because they could only be reported to the log itself.
fn write_all(mut target: impl Write, orders: &Receiver<Message>, dropped: &AtomicU64) {
    while let Ok(order) = orders.recv() {
        match order {
            Message::Write(line) => drop(target.write_all(&line)),
            Message::Report(to) => drop(to.send(())),
        }
        let missed = dropped.swap(0, Ordering::Relaxed);
        if missed > 0 {
            let _ =
                writeln!(target, "{{\"level\":\"WARN\",\"message\":\"{missed} log lines were dropped\"}}");
        }
    }
}

impl<'a> MakeWriter<'a> for NonBlocking {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Line<'a> {
        Line { to: self, text: Vec::with_capacity(256) }
    }
}

impl Write for Line<'_> {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.text.extend_from_slice(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Line<'_> {
    fn drop(&mut self) {
        if self.to.lines.try_send(Message::Write(std::mem::take(&mut self.text))).is_err() {
            self.to.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// A writer that blocks every write until it is opened, and keeps the written text.
    #[derive(Clone, Default)]
    struct Gate(Arc<(Mutex<State>, Condvar)>);

    type State = (bool, Vec<u8>);

    impl Gate {
        fn open(&self) {
            self.0.0.lock().unwrap().0 = true;
            self.0.1.notify_all();
        }

        fn wait_for(&self, text: &str) {
            let state = self.0.0.lock().unwrap();
            let seen = |state: &mut State| !String::from_utf8_lossy(&state.1).contains(text);
            let bound = std::time::Duration::from_mins(1);
            let (_state, timeout) = self.0.1.wait_timeout_while(state, bound, seen).unwrap();
            assert!(!timeout.timed_out(), "never wrote {text:?}");
        }
    }

    impl Write for Gate {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            let mut state = self.0.1.wait_while(self.0.0.lock().unwrap(), |state| !state.0).unwrap();
            state.1.extend_from_slice(text);
            self.0.1.notify_all();
            Ok(text.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn pending_lines_are_written_at_the_end() {
        let gate = Gate::default();
        gate.open();
        let log = NonBlocking::start(gate.clone()).unwrap();
        let last_lines = log.last_lines();
        log.make_writer().write_all(b"the end\n").unwrap();
        drop(last_lines);
        assert_eq!(gate.0.0.lock().unwrap().1, b"the end\n");
    }

    #[test]
    fn a_blocked_output_drops_lines_and_does_not_block_the_service() {
        let gate = Gate::default();
        let log = NonBlocking::start(gate.clone()).unwrap();
        for _ in 0..MAX_PENDING_LINES + 10 {
            log.make_writer().write_all(b"line\n").unwrap();
        }
        gate.open();
        gate.wait_for("log lines were dropped");
    }
}

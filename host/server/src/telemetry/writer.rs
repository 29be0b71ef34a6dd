//! A writer that never waits: a slow or stuck reader of the log costs lines, not requests.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use tracing_subscriber::fmt::MakeWriter;

/// Lines that may wait to be written.
const WAITING: usize = 8192;

/// Hands lines to a thread that writes them.
#[derive(Clone)]
pub(super) struct NonBlocking {
    lines: SyncSender<Vec<u8>>,
    dropped: Arc<AtomicU64>,
}

/// One line being formatted.
pub(super) struct Line<'a> {
    to: &'a NonBlocking,
    text: Vec<u8>,
}

impl NonBlocking {
    /// Starts the thread; it ends when the last handle is gone.
    pub(super) fn start(target: impl Write + Send + 'static) -> io::Result<Self> {
        let (lines, waiting) = sync_channel(WAITING);
        let dropped = Arc::<AtomicU64>::default();
        let counter = Arc::clone(&dropped);
        std::thread::Builder::new()
            .name("log".into())
            .spawn(move || write_all(target, &waiting, &counter))?;
        Ok(Self { lines, dropped })
    }
}

/// Nothing can be done about an error here: the log is where it would be told.
fn write_all(mut target: impl Write, lines: &Receiver<Vec<u8>>, dropped: &AtomicU64) {
    while let Ok(line) = lines.recv() {
        let _ = target.write_all(&line);
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
        if self.to.lines.try_send(std::mem::take(&mut self.text)).is_err() {
            self.to.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Condvar, Mutex};

    /// Blocks every write until it is opened, and keeps what was written.
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
            let bound = std::time::Duration::from_secs(10);
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
    fn a_stuck_reader_costs_lines_and_nothing_else() {
        let gate = Gate::default();
        let log = NonBlocking::start(gate.clone()).unwrap();
        for _ in 0..WAITING + 10 {
            log.make_writer().write_all(b"line\n").unwrap();
        }
        gate.open();
        gate.wait_for("log lines were dropped");
    }
}

//! The lines that a policy logs.

use std::sync::{Arc, Mutex};

/// The captured log; clones share it.
#[derive(Clone, Default)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    /// The number of lines that contain `one`, and of those that contain `other`.
    pub(crate) fn count(&self, one: &str, other: &str) -> (usize, usize) {
        let written = self.0.lock().unwrap();
        let text = String::from_utf8_lossy(&written);
        let with = |part: &str| text.lines().filter(|line| line.contains(part)).count();
        (with(one), with(other))
    }
}

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

//! Text files in a lab.

pub use crate::bindings::lab_files::TextFile;

impl TextFile {
    /// A file at this absolute path.
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into() }
    }
}

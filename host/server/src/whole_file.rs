//! Files that are written completely or not at all.

use std::path::Path;

/// Writes the file completely or not at all: a reader finds the old content or the new one.
pub(crate) fn write(file: &Path, content: &[u8]) -> std::io::Result<()> {
    let unfinished = file.with_extension(format!("{}.tmp", std::process::id()));
    std::fs::write(&unfinished, content)?;
    std::fs::rename(unfinished, file)
}

//! Writes files completely or not at all.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;

/// Writes the file completely or not at all. A reader finds either the old or the new content, even after a power
/// failure.
pub fn write(file: &Path, content: &[u8]) -> std::io::Result<()> {
    let unfinished = file.with_extension(format!("{}.tmp", std::process::id()));
    let written = write_to_disk(&unfinished, content).and_then(|()| std::fs::rename(&unfinished, file));
    if written.is_err() {
        // The error of the write matters, not that of the removal.
        let _ = std::fs::remove_file(&unfinished);
    }
    written
}

fn write_to_disk(file: &Path, content: &[u8]) -> std::io::Result<()> {
    let mut file = File::create(file)?;
    file.write_all(content)?;
    file.sync_all()
}

//! The files of cases.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

/// Returns the cases of a folder in the order of their names, or the one file.
pub(super) fn case_files(cases: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let named = || format!("{} cannot be read", cases.display());
    if !cases.metadata().with_context(named)?.is_dir() {
        return Ok(vec![cases.to_owned()]);
    }
    let mut files = Vec::new();
    for entry in cases.read_dir().with_context(named)? {
        let file = entry.with_context(named)?.path();
        if file.extension().is_some_and(|extension| extension == "yaml" || extension == "json") {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        bail!("{} has no case: a file *.yaml or *.json", cases.display());
    }
    Ok(files)
}

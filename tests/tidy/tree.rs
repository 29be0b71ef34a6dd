//! The files of the repository.

use std::path::{Path, PathBuf};
use std::{env, fs};

/// A text file, with its path relative to the root of the repository.
pub(crate) struct Text {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Text {
    /// The file's name without its extension; for `mod.rs` the name of the folder.
    pub(crate) fn stem(&self) -> &str {
        let path = self.path.trim_end_matches("/mod.rs");
        let name = path.rsplit('/').next().unwrap_or(path);
        name.split('.').next().unwrap_or(name)
    }

    pub(crate) fn is(&self, ending: &str) -> bool {
        self.path.ends_with(ending)
    }
}

/// All text files, sorted, without built or installed files and those of git.
pub(crate) fn texts() -> Vec<Text> {
    // The folder of this run is read at run time, because clones that share a target folder share the program.
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap());
    let root = package.join("../..").canonicalize().unwrap();
    let mut found = Vec::new();
    walk(&root, &root, &mut found);
    found.sort_by(|a, b| a.path.cmp(&b.path));
    assert!(found.len() > 50, "only {} files were found under {}", found.len(), root.display());
    found
}

/// The Rust sources in a folder.
pub(crate) fn rust_in(folder: &str) -> Vec<Text> {
    texts().into_iter().filter(|file| file.is(".rs") && file.path.starts_with(folder)).collect()
}

/// The text of a file. Panics if the file does not exist.
pub(crate) fn read(path: &str) -> String {
    let found = texts().into_iter().find(|file| file.path == path);
    found.unwrap_or_else(|| panic!("{path} is missing")).text
}

/// The part of a text between two others. Panics if there is none.
pub(crate) fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
    let (_, rest) = text.split_once(begin).unwrap_or_else(|| panic!("`{begin}` is missing"));
    rest.split_once(end).unwrap_or_else(|| panic!("`{end}` is missing")).0
}

fn walk(root: &Path, folder: &Path, found: &mut Vec<Text>) {
    const NOT_OURS: [&str; 3] = ["target", "node_modules", "__pycache__"];
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let of_a_tool = name.starts_with('.') && name != ".ci" && name != ".gitignore";
        if of_a_tool || NOT_OURS.contains(&&*name) || name.ends_with(".egg-info") {
            continue;
        }
        if entry.file_type().unwrap().is_dir() {
            walk(root, &path, found);
        } else if let Ok(text) = fs::read_to_string(&path) {
            let path = path.strip_prefix(root).unwrap().to_string_lossy().into_owned();
            found.push(Text { path, text });
        }
    }
}

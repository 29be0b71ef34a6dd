//! The sources of a policy, and their changes.
//!
//! The files are polled, and no events of the operating system are used. Such events do not arrive from network and
//! container file systems, come in tens of thousands while a build writes its own files, and end when an editor
//! replaces a folder. A project has some hundred files besides those that are skipped here, so a look takes about a
//! millisecond.

use std::collections::BTreeMap;
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The time between two looks. Two looks with the same result mean that an editor has finished.
const LOOK: Duration = Duration::from_millis(250);

/// The folders that are filled by tools and not by people.
const OF_TOOLS: [&str; 3] = ["target", "node_modules", "__pycache__"];
/// The files that a build writes, in addition to components.
const OF_BUILDS: [&str; 2] = ["Cargo.lock", "package-lock.json"];

/// The files and folders that a policy is made from and tested with.
pub(super) struct Sources {
    places: Vec<PathBuf>,
}

/// The files with their times and sizes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct State(BTreeMap<PathBuf, (Option<SystemTime>, u64)>);

impl Sources {
    pub(super) fn new(places: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { places: places.into_iter().collect() }
    }

    /// Returns the present files.
    pub(super) fn state(&self) -> State {
        let mut state = State::default();
        for place in &self.places {
            match place.metadata() {
                Ok(found) if found.is_dir() => state.add_folder(place),
                Ok(found) => state.add(place.clone(), &found),
                Err(_) => {}
            }
        }
        state
    }

    /// Waits until the files differ from `known` and then stay the same for a moment.
    pub(super) async fn changed(&self, known: &State) -> State {
        let mut last = known.clone();
        loop {
            let now = self.state();
            if now == last && now != *known {
                return now;
            }
            last = now;
            tokio::time::sleep(LOOK).await;
        }
    }
}

impl State {
    /// Returns the files that have changed, are gone or are new.
    pub(super) fn changes_since<'a>(&'a self, before: &'a Self) -> Vec<&'a Path> {
        let changed = self.0.iter().filter(|(file, state)| before.0.get(*file) != Some(state));
        let gone = before.0.iter().filter(|(file, _)| !self.0.contains_key(*file));
        changed.chain(gone).map(|(file, _)| file.as_path()).collect()
    }

    fn add(&mut self, file: PathBuf, found: &Metadata) {
        self.0.insert(file, (found.modified().ok(), found.len()));
    }

    /// Adds the contents of a folder. Files that cannot be read count as missing: an editor may be replacing them.
    fn add_folder(&mut self, folder: &Path) {
        for entry in folder.read_dir().into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if entry.file_type().is_ok_and(|found| found.is_dir()) {
                if !name.starts_with('.') && !OF_TOOLS.contains(&&*name) {
                    self.add_folder(&path);
                }
                continue;
            }
            // A link to a file changes when that file does. A link to a folder is not followed, because it may lead
            // round in a circle.
            match path.metadata() {
                Ok(found) if found.is_file() && is_source(&name) => self.add(path, &found),
                _ => {}
            }
        }
    }
}

/// True for files that people write.
fn is_source(name: &str) -> bool {
    let of_an_editor = name.starts_with('.') || name.starts_with('#') || name.ends_with('~');
    let is_built = Path::new(name).extension().is_some_and(|ending| ending == "wasm" || ending == "tmp");
    !of_an_editor && !is_built && !OF_BUILDS.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn project() -> (tempfile::TempDir, Sources) {
        let folder = tempfile::tempdir().unwrap();
        for file in ["src/lib.rs", "target/debug/x", ".git/index", "node_modules/a/b.js"] {
            let file = folder.path().join(file);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "x").unwrap();
        }
        let sources = Sources::new([folder.path().to_owned()]);
        (folder, sources)
    }

    #[test]
    fn what_tools_write_is_no_change() {
        let (folder, sources) = project();
        let before = sources.state();
        assert_eq!(before.0.len(), 1, "{before:?}");
        for file in ["mine.wasm", "Cargo.lock", ".lib.rs.swp", "src/lib.rs~", "target/debug/y"] {
            std::fs::write(folder.path().join(file), "y").unwrap();
        }
        assert_eq!(sources.state(), before);
        std::fs::create_dir(folder.path().join("cases")).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("cases/again")).unwrap();
        std::fs::write(folder.path().join("cases/1.yaml"), "y").unwrap();
        std::fs::remove_file(folder.path().join("src/lib.rs")).unwrap();
        assert_eq!(
            sources.state().changes_since(&before),
            [folder.path().join("cases/1.yaml"), folder.path().join("src/lib.rs")]
        );
    }

    #[tokio::test(start_paused = true)]
    async fn a_change_is_told_once_it_is_complete() {
        let (folder, sources) = project();
        let before = sources.state();
        let waiting = sources.changed(&before);
        let editor = async {
            // A file that an editor makes and removes is no change.
            std::fs::write(folder.path().join("4913"), "").unwrap();
            tokio::time::sleep(LOOK).await;
            std::fs::remove_file(folder.path().join("4913")).unwrap();
            tokio::time::sleep(10 * LOOK).await;
            std::fs::write(folder.path().join("src/lib.rs"), "longer").unwrap();
        };
        let (now, ()) = tokio::join!(waiting, editor);
        assert_eq!(now.changes_since(&before), [folder.path().join("src/lib.rs")]);
    }
}

//! Reads files from the folder in which the operator's configuration names them, and from nowhere else. A link in the
//! folder cannot lead out of it.

use std::ffi::OsString;
use std::io::{self, Read as _};
use std::path::Path;

use cap_std::ambient_authority;
use cap_std::fs::Dir;

/// An opened folder.
pub struct Folder(Dir);

/// The reason that a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableFile {
    /// The operating system returned an error.
    #[error(transparent)]
    Io(io::Error),
    /// The path names a folder, a pipe or a device.
    #[error("it is not a file")]
    NotAFile,
    /// The path is a link that leads out of the folder.
    #[error(
        "it is a link that leads out of its folder, which is not followed; name the file that it leads to"
    )]
    LeadsOut,
    /// The file is too large.
    #[error("it has {size} bytes; the largest that is read has {limit}")]
    TooLarge {
        /// The size of the file, in bytes.
        size: u64,
        /// The largest accepted size, in bytes.
        limit: u64,
    },
    /// The file is not text in UTF-8.
    #[error("it is not text in UTF-8")]
    NotText,
}

impl From<io::Error> for UnreadableFile {
    fn from(error: io::Error) -> Self {
        // cap-std creates this error itself, so it has no code of the operating system.
        if error.kind() == io::ErrorKind::PermissionDenied && error.raw_os_error().is_none() {
            return Self::LeadsOut;
        }
        Self::Io(error)
    }
}

impl Folder {
    /// Opens a folder.
    pub fn open(path: &Path) -> io::Result<Self> {
        Dir::open_ambient_dir(path, ambient_authority()).map(Self)
    }

    /// Returns the names of the entries in the folder, sorted.
    pub fn names(&self) -> io::Result<Vec<OsString>> {
        let entries = self.0.entries()?.map(|entry| Ok(entry?.file_name()));
        let mut names = entries.collect::<io::Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    /// Reads a file of at most `limit` bytes.
    pub fn read(&self, name: &Path, limit: u64) -> Result<Vec<u8>, UnreadableFile> {
        // A pipe must not even be opened: opening it blocks until another process writes to it.
        let metadata = self.0.metadata(name)?;
        if !metadata.is_file() {
            return Err(UnreadableFile::NotAFile);
        }
        if metadata.len() > limit {
            return Err(UnreadableFile::TooLarge { size: metadata.len(), limit });
        }
        let mut bytes = Vec::new();
        // The file may have grown since the check.
        self.0.open(name)?.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        let size = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        if size > limit {
            return Err(UnreadableFile::TooLarge { size, limit });
        }
        Ok(bytes)
    }

    /// Reads a text file of at most `limit` bytes.
    pub fn read_text(&self, name: &Path, limit: u64) -> Result<String, UnreadableFile> {
        text(self.read(name, limit)?)
    }
}

fn text(bytes: Vec<u8>) -> Result<String, UnreadableFile> {
    String::from_utf8(bytes).map_err(|_| UnreadableFile::NotText)
}

/// Reads a file of at most `limit` bytes, confined to its parent folder.
pub fn read(path: &Path, limit: u64) -> Result<Vec<u8>, UnreadableFile> {
    let name = path.file_name().ok_or(UnreadableFile::NotAFile)?;
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    Folder::open(folder.unwrap_or(Path::new(".")))?.read(Path::new(name), limit)
}

/// Reads a text file of at most `limit` bytes, confined to its parent folder.
pub fn read_text(path: &Path, limit: u64) -> Result<String, UnreadableFile> {
    text(read(path, limit)?)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn problem(path: &Path) -> String {
        read(path, 4).unwrap_err().to_string()
    }

    #[test]
    fn what_is_in_the_folder_is_read_and_nothing_else() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| folder.path().join(name);
        // As Kubernetes mounts a ConfigMap.
        fs::create_dir(at("..2026")).unwrap();
        fs::write(at("..2026/teams"), "abcd").unwrap();
        symlink("..2026", at("..data")).unwrap();
        symlink("..data/teams", at("teams")).unwrap();
        assert_eq!(read(&at("teams"), 4).unwrap(), b"abcd");

        fs::write(at("large"), "abcde").unwrap();
        assert_eq!(problem(&at("large")), "it has 5 bytes; the largest that is read has 4");
        fs::write(elsewhere.path().join("secret"), "abcd").unwrap();
        symlink(elsewhere.path().join("secret"), at("absolute")).unwrap();
        symlink("../secret", at("relative")).unwrap();
        for link in ["absolute", "relative"] {
            assert!(problem(&at(link)).starts_with("it is a link that leads out of its folder"), "{link}");
        }
        assert_eq!(problem(&at("..2026")), "it is not a file");
        assert!(problem(&at("absent")).contains("No such file"));
        assert_eq!(problem(Path::new("/")), "it is not a file");
    }

    #[test]
    fn nobody_waits_for_a_pipe() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_eq!(problem(&pipe), "it is not a file");
    }

    #[test]
    fn a_text_is_utf_8() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("latin"), b"caf\xe9").unwrap();
        assert!(matches!(read_text(&folder.path().join("latin"), 4), Err(UnreadableFile::NotText)));
    }
}

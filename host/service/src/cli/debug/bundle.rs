//! The tar file.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context as _;

/// A part of the bundle: a file, or the reason why it is left out.
pub(super) struct Part {
    pub(super) name: &'static str,
    pub(super) content: Result<String, String>,
}

/// Writes the parts and a table of contents into a new file that only its owner can read. Returns the table.
pub(super) fn write(path: &Path, parts: &[Part]) -> anyhow::Result<String> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let file = file.with_context(|| format!("--output: {} cannot be created", path.display()))?;
    let contents = table_of_contents(parts)?;
    let mut tar = tar::Builder::new(file);
    append(&mut tar, "CONTENTS.txt", &contents)?;
    for part in parts {
        if let Ok(content) = &part.content {
            append(&mut tar, part.name, content)?;
        }
    }
    tar.into_inner()?.sync_all()?;
    Ok(contents)
}

fn append(tar: &mut tar::Builder<std::fs::File>, name: &str, content: &str) -> anyhow::Result<()> {
    let mut header = tar::Header::new_gnu();
    header.set_size(content.len().try_into()?);
    header.set_mode(0o600);
    header.set_mtime(jiff::Timestamp::now().as_second().try_into().unwrap_or_default());
    Ok(tar.append_data(&mut header, format!("wasmspawner-debug/{name}"), content.as_bytes())?)
}

fn table_of_contents(parts: &[Part]) -> anyhow::Result<String> {
    let mut text = "Included:\n".to_owned();
    for part in parts.iter().filter(|part| part.content.is_ok()) {
        writeln!(text, "  {}", part.name)?;
    }
    text.push_str("Left out:\n");
    for part in parts {
        if let Err(reason) = &part.content {
            writeln!(text, "  {}: {reason}", part.name)?;
        }
    }
    text.push_str(
        "Everywhere: values of options and variables, configurations of policies, identities of users, and what looks \
         like a credential. Names of users and labs are included. The history is that of labs that exist.\n",
    );
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_bundle_is_private_and_says_what_it_lacks_and_nothing_is_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle.tar");
        let parts = [
            Part { name: "version.txt", content: Ok("1".to_owned()) },
            Part { name: "service.log", content: Err("--log is not given".to_owned()) },
        ];
        let contents = write(&path, &parts).unwrap();
        assert!(
            contents.contains("  version.txt\nLeft out:\n  service.log: --log is not given"),
            "{contents}"
        );
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        let mut tar = tar::Archive::new(std::fs::File::open(&path).unwrap());
        let names: Vec<_> =
            tar.entries().unwrap().map(|entry| entry.unwrap().path().unwrap().into_owned()).collect();
        let expected = ["wasmspawner-debug/CONTENTS.txt", "wasmspawner-debug/version.txt"];
        assert_eq!(names, expected.map(std::path::PathBuf::from));
        assert!(write(&path, &parts).unwrap_err().to_string().contains("cannot be created"));
    }
}

//! `lab.files`: text files that every lab has.

use std::collections::BTreeMap;

use crate::values::field_error::FieldError;
use crate::values::path;

/// The largest number of bytes of all files. They share a `ConfigMap`, which holds 1 MiB, with the lab's `/etc/passwd` and
/// `/etc/group`.
pub(crate) const MAX_BYTES: usize = 512 * 1024;

/// Files and directories that every lab has anyway.
const TAKEN: [&str; 2] = ["/", "/tmp"];

/// Files and directories that every lab has anyway, and below which nothing can be put.
const CLOSED: [&str; 7] = [
    "/dev",
    "/etc/group",
    "/etc/passwd",
    "/proc",
    "/run/secrets/kubernetes.io",
    "/sys",
    "/var/run/secrets/kubernetes.io",
];

/// Checks the path of a file, regardless of what else the lab has.
///
/// # Errors
///
/// The problem with the path.
pub(crate) fn path_of_file(path: &str) -> Result<(), &'static str> {
    let is_file = path::is_absolute(path) && !path.ends_with('/') && path.split('/').skip(1).all(is_name);
    if TAKEN.contains(&path) || CLOSED.iter().any(|closed| path::is_below(path, closed)) {
        Err("is there in every lab; choose another path")
    } else if !is_file {
        Err("is not the absolute path of a file, such as /opt/site/settings.yaml")
    } else {
        Ok(())
    }
}

/// Returns what is wrong with the files.
pub(super) fn check(files: &BTreeMap<String, String>, secrets_path: Option<&str>) -> Vec<FieldError> {
    let problem = |path: &str| {
        if let Err(problem) = path_of_file(path) {
            Some(problem.to_owned())
        } else if secrets_path.is_some_and(|secrets| path::is_below(path, secrets)) {
            Some("is in the directory of the secrets (`lab.secrets_path`); choose another path".to_owned())
        } else {
            let above = files.keys().find(|other| *other != path && path::is_below(path, other));
            above.map(|other| format!("is below `{other}`, which is a file, too"))
        }
    };
    let each =
        files.keys().filter_map(|path| Some(FieldError::new(format!("lab.files.{path}"), problem(path)?)));
    let mut errors: Vec<_> = each.collect();
    let bytes: usize = files.values().map(String::len).sum();
    if bytes > MAX_BYTES {
        let message =
            format!("have {bytes} bytes together; {MAX_BYTES} are possible. Use a volume, or the image");
        errors.push(FieldError::new("lab.files", message));
    }
    errors
}

fn is_name(step: &str) -> bool {
    !step.is_empty() && step != "."
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problems(paths: &[&str]) -> Vec<String> {
        let files = paths.iter().map(|path| ((*path).to_owned(), "text".to_owned())).collect();
        check(&files, Some("/etc/secrets")).into_iter().map(|error| error.field).collect()
    }

    #[test]
    fn files_have_paths_of_their_own() {
        assert_eq!(problems(&["/opt/a.yml", "/opt/b/a.yml", "/etc/secrets2"]), Vec::<String>::new());
        for wrong in [
            "",
            "/",
            "a",
            "/tmp",
            "/etc/passwd",
            "/etc/passwd/x",
            "/proc/self",
            "/a/",
            "/a/../b",
            "/a//b",
            "/a/./b",
            "/a:b",
            "/etc/secrets/x",
        ] {
            assert_eq!(problems(&[wrong]), [format!("lab.files.{wrong}")], "{wrong}");
        }
        assert_eq!(problems(&["/opt/a", "/opt/a/b"]), ["lab.files./opt/a/b"]);
    }

    #[test]
    fn files_are_small() {
        let files = |bytes| BTreeMap::from([("/a".to_owned(), "x".repeat(bytes))]);
        assert_eq!(check(&files(MAX_BYTES), None).len(), 0);
        assert_eq!(check(&files(MAX_BYTES + 1), None)[0].field, "lab.files");
    }
}

use super::findings::Findings;
use crate::config::lab::path_of_file;
use crate::policy::{FieldError, TextFile};

/// The largest number of files that a policy may give.
const MAX_FILES: usize = 64;

/// The longest path, in bytes.
const MAX_PATH_BYTES: usize = 512;

/// Returns all errors in an answer to `lab-files`, file by file. Rules about several answers together, such as that nothing
/// else is mounted at the path, are checked when the answers are merged.
pub fn check_lab_files(files: &[TextFile]) -> Vec<FieldError> {
    let mut found = Findings::default();
    if files.len() > MAX_FILES {
        found.add("files", format!("are {}; {MAX_FILES} are possible", files.len()));
        return found.into_errors();
    }
    found.each("files", files, ("path", |file| file.path.clone()), |file, found| {
        if let Err(problem) = path_of_file(&file.path) {
            found.add("path", format!("`{}` {problem}", file.path));
        }
        found.refuse_if(file.path.len() > MAX_PATH_BYTES, "path", "is longer than 512 bytes");
    });
    found.into_errors()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_have_paths_of_their_own() {
        let file = |path: &str| TextFile { path: path.to_owned(), content: String::new() };
        assert_eq!(check_lab_files(&[file("/etc/site/lab.json"), file("/opt/b")]), []);
        let wrong = check_lab_files(&[file("etc/a"), file("/etc/passwd"), file("/b"), file("/b")]);
        let fields: Vec<_> = wrong.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(fields, ["files[0].path", "files[1].path", "files[3].path"]);
        let many: Vec<_> = (0..=MAX_FILES).map(|number| file(&format!("/f{number}"))).collect();
        assert_eq!(check_lab_files(&many[1..]), []);
        assert_eq!(check_lab_files(&many)[0].field, "files");
        assert_eq!(check_lab_files(&[file(&format!("/{}", "x".repeat(512)))])[0].field, "files[0].path");
    }
}

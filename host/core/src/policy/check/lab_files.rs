use super::findings::Findings;
use crate::config::lab::path_of_file;
use crate::policy::{FieldError, TextFile};

/// Returns all errors in an answer to `lab-files`, file by file. Rules about several answers together, such as that nothing
/// else is mounted at the path, are checked when the answers are merged.
pub fn check_lab_files(files: &[TextFile]) -> Vec<FieldError> {
    let mut found = Findings::default();
    found.each("files", files, ("path", |file| file.path.clone()), |file, found| {
        if let Err(problem) = path_of_file(&file.path) {
            found.add("path", format!("`{}` {problem}", file.path));
        }
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
    }
}

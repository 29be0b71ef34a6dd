//! Golden files: `tests/golden/manifest/NAME.case.yaml` must give exactly `NAME.yaml`. `UPDATE_GOLDEN=1` rewrites them;
//! check the difference.

use std::path::{Path, PathBuf};

use super::case::Case;

#[test]
fn every_case_gives_the_objects_of_its_golden_file() {
    let mut names: Vec<PathBuf> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.retain(|path| path.to_string_lossy().ends_with(".case.yaml"));
    names.sort();
    assert!(names.len() >= 9, "{names:?}");
    for path in names {
        let got = yaml(&Case::read(&std::fs::read_to_string(&path).unwrap()));
        compare(&PathBuf::from(path.to_string_lossy().replace(".case.yaml", ".yaml")), &got);
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/manifest")
}

fn yaml(case: &Case) -> String {
    let objects = case.clone().objects().redacted();
    objects.iter().flat_map(|object| ["---\n".to_owned(), serde_saphyr::to_string(object).unwrap()]).collect()
}

fn compare(path: &Path, got: &str) {
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, got).unwrap();
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    let difference =
        expected.lines().zip(got.lines()).enumerate().find(|(_, (expected, got))| expected != got);
    assert!(
        expected == got,
        "{} differs from what is built now, first at {difference:?}; see UPDATE_GOLDEN in this file",
        path.display()
    );
}

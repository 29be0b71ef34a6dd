//! Words that must not occur in the repository, and words that need a reason beside them.

use super::assert_rule;
use super::tree::texts;

#[test]
fn no_file_names_a_path_of_one_machine() {
    // Written in parts, so that this file does not contain the words.
    let foreign = [
        concat!("../", "shared"),
        concat!("/work", "/"),
        concat!("/root", "/"),
        concat!("/tmp/", "bash_jobs"),
    ];
    let mut offences = Vec::new();
    for file in texts() {
        for (number, line) in file.text.lines().enumerate() {
            if foreign.iter().any(|word| starts_a_path(line, word)) {
                offences.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    assert_rule("These paths exist on one machine only; remove them:", &offences);
}

/// True if `word` occurs in the line and is not the end of a longer path, such as a home's own `work` folder.
fn starts_a_path(line: &str, word: &str) -> bool {
    let inside = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '}' | '~');
    line.match_indices(word).any(|(at, _)| !line[..at].ends_with(inside))
}

#[test]
fn a_lint_is_allowed_for_a_reason() {
    let mut offences = Vec::new();
    for file in texts().iter().filter(|file| file.is(".rs") && !file.path.starts_with("tests/tidy/")) {
        let lines: Vec<&str> = file.text.lines().map(str::trim).collect();
        for (index, line) in lines.iter().enumerate() {
            let lifts = ["#[allow(", "#![allow(", "#[expect(", "#![expect("]
                .iter()
                .any(|start| line.starts_with(start));
            let attribute = lines[index..].iter().take_while(|line| !line.ends_with(']')).count();
            let reasoned =
                lines[index..=(index + attribute).min(lines.len() - 1)].join(" ").contains("reason");
            let commented = line.contains("//") || (index > 0 && lines[index - 1].starts_with("//"));
            if lifts && !reasoned && !commented {
                offences.push(format!("{}:{}: {line}", file.path, index + 1));
            }
        }
    }
    assert_rule("Give the reason for lifting a lint, in the attribute or in a comment:", &offences);
}

#[test]
fn no_file_has_a_to_do_mark() {
    let marks = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X:")];
    let mut offences = Vec::new();
    for file in texts().iter().filter(|file| file.is(".rs") || file.is(".py") || file.is(".wit")) {
        for (number, line) in file.text.lines().enumerate() {
            if marks.iter().any(|mark| line.contains(mark)) {
                offences.push(format!("{}:{}: {}", file.path, number + 1, line.trim()));
            }
        }
    }
    assert_rule(
        "These marks are not allowed; name what is missing in the README's limits, or do it:",
        &offences,
    );
}

//! SECURITY.md and deploy/README.md name the tests for their claims.

use super::assert_rule;
use super::tree::{read, texts};

#[test]
fn every_test_that_a_page_names_exists() {
    let sources = texts();
    let exists = |name: &str| {
        sources
            .iter()
            .any(|file| ["fn", "def"].iter().any(|word| file.text.contains(&format!("{word} {name}("))))
    };
    let mut offences = Vec::new();
    for (path, section, at_least) in
        [("SECURITY.md", "# ", 15), ("deploy/README.md", "### What happens to users\n", 8)]
    {
        let page = read(path);
        let (_, after) = page.split_once(section).unwrap_or_default();
        let (text, _) = after.split_once("\n### ").unwrap_or((after, ""));
        let named: Vec<&str> =
            text.split('`').skip(1).step_by(2).filter(|text| is_name_of_test(text)).collect();
        assert!(named.len() > at_least, "the names in {path} are found: {named:?}");
        let missing = named.into_iter().filter(|name| !exists(name));
        offences.extend(missing.map(|name| format!("{path}: {name}")));
    }
    assert_rule("These pages name tests that do not exist:", &offences);
}

fn is_name_of_test(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.matches('_').count() > 2 && text.chars().all(plain)
}

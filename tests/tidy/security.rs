//! SECURITY.md names the tests for its claims.

use super::assert_rule;
use super::tree::{read, texts};

#[test]
fn every_test_that_security_md_names_exists() {
    let page = read("SECURITY.md");
    let named: Vec<&str> = page.split('`').skip(1).step_by(2).filter(|text| is_name_of_test(text)).collect();
    assert!(named.len() > 15, "the names are found: {named:?}");
    let sources = texts();
    let exists = |name: &&str| {
        sources
            .iter()
            .any(|file| ["fn", "def"].iter().any(|word| file.text.contains(&format!("{word} {name}("))))
    };
    let offences: Vec<String> = named.into_iter().filter(|name| !exists(name)).map(str::to_owned).collect();
    assert_rule("SECURITY.md names tests that do not exist:", &offences);
}

fn is_name_of_test(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    text.matches('_').count() > 2 && text.chars().all(plain)
}

//! The expressions of `validation_regex`, which sites write for Python.

use regex_lite::Regex;

/// Compiles the expression so that it must match the whole text. The expression is first compiled alone: none of its
/// brackets can then pair with a bracket that is added here.
pub(super) fn whole(pattern: &str) -> Result<Regex, String> {
    let problem = |error: regex_lite::Error| {
        format!(
            "`{pattern}` is not a supported regular expression: {error}; lookaround, backreferences and \\p{{..}} are missing"
        )
    };
    Regex::new(pattern).map_err(problem)?;
    Regex::new(&format!(r"\A(?:{pattern})\z")).map_err(problem)
}

/// Refuses an expression that would compile here but match differently than in Python.
pub(super) fn check(pattern: &str) -> Result<(), String> {
    let Some((part, meaning)) = other_meaning(pattern) else { return whole(pattern).map(drop) };
    Err(format!("`{pattern}` has `{part}`, {meaning}; write it in another way"))
}

/// Returns the first part with another meaning than in Python, and its meaning there.
fn other_meaning(pattern: &str) -> Option<(&str, &'static str)> {
    let mut at = 0;
    let mut in_class = false;
    // `repeated`: a repetition such as `*` or `{2}` ends here. `counting`: a repetition with numbers has begun.
    let (mut repeated, mut counting) = (false, false);
    while let Some(char) = pattern[at..].chars().next() {
        let rest = &pattern[at..];
        let two = rest.get(..2).unwrap_or(rest);
        let mut length = char.len_utf8();
        let was_repeated = std::mem::take(&mut repeated);
        match char {
            '\\' => {
                if !in_class && matches!(two, r"\<" | r"\>") {
                    return Some((two, "which is that character in Python"));
                }
                if !in_class && rest.starts_with(r"\b{") {
                    return Some((&rest[..3], "which repeats a boundary in Python"));
                }
                length += rest[1..].chars().next().map_or(0, char::len_utf8);
            }
            '[' if in_class && two == "[:" => return Some((two, "which are two characters in Python")),
            '[' if !in_class => {
                in_class = true;
                // A bracket at the beginning is a character.
                length += rest[1..].bytes().take_while(|byte| *byte == b'^').take(1).count();
                length += usize::from(rest[length..].starts_with(']'));
            }
            ']' => in_class = false,
            _ if in_class => {}
            '+' if was_repeated => {
                return Some(("+", "which after another repetition is possessive in Python"));
            }
            '*' | '+' | '?' => repeated = true,
            '{' => counting = true,
            '}' => repeated = std::mem::take(&mut counting),
            _ => {}
        }
        at += length;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_matches_the_whole_text() {
        for (pattern, text, expected) in [
            (r"quay\.io/.+:.+", "quay.io/a/b:1", true),
            (r"quay\.io/.+:.+", "evil.example/quay.io/a/b:1", false),
            ("a|ab", "ab", true),
            ("a|b", "ax", false),
            ("^a$", "a", true),
            ("a", "a\n", false),
            ("(?i)lab", "LAB", true),
        ] {
            assert_eq!(whole(pattern).unwrap().is_match(text), expected, "{pattern} {text}");
        }
        for pattern in ["(", "a)|(b", r"(?=a)", r"(a)\1", r"\p{L}", "(?x)a # comment"] {
            assert!(check(pattern).is_err(), "{pattern}");
        }
    }

    #[test]
    fn what_python_reads_in_another_way_is_refused() {
        for (pattern, part) in [
            ("a*+", "+"),
            ("(?:a|b)++", "+"),
            ("a?+b", "+"),
            (r"\d{1,2}+", "+"),
            (r"a\<b", r"\<"),
            (r"\>", r"\>"),
            ("[[:alpha:]]", "[:"),
            ("x[^][:digit:]]", "[:"),
            (r"\b{start}a", r"\b{"),
        ] {
            assert_eq!(other_meaning(pattern).map(|(part, _)| part), Some(part), "{pattern}");
        }
        for pattern in [
            "a+?", "(a+)+", r"a\*+", r"\++", "[*+]+", "[]+]+", "[^]*+]", "}+", "a{2}b+", "[é:]+", r"[\<]",
            r"\\<", "",
        ] {
            assert_eq!(other_meaning(pattern), None, "{pattern}");
        }
        let message = check("a++").unwrap_err();
        assert_eq!(
            message,
            "`a++` has `+`, which after another repetition is possessive in Python; write it in another way"
        );
    }
}

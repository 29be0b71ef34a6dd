//! Untrusted text on a terminal.

use std::borrow::Cow;

/// Escapes the control characters of `text`, so that it cannot control the terminal.
pub(super) fn plain(text: &str) -> Cow<'_, str> {
    if !text.chars().any(char::is_control) {
        return text.into();
    }
    let shown = |c: char| {
        if c.is_control() { c.escape_default().to_string() } else { c.to_string() }
    };
    text.chars().map(shown).collect::<String>().into()
}

#[cfg(test)]
mod tests {
    #[test]
    fn control_characters_are_printed_escaped() {
        assert_eq!(super::plain("é x"), "é x");
        assert_eq!(super::plain("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
    }
}

//! Python's `repr` and `ascii` of a string, for the conversions `!r` and `!a`.

use std::fmt::Write as _;

/// Returns the quoted text, with unprintable characters escaped.
pub(super) fn repr(text: &str) -> String {
    quote(text, is_printable)
}

/// Returns the quoted text, with everything except printable ASCII escaped.
pub(super) fn ascii(text: &str) -> String {
    quote(text, |c| c.is_ascii() && !c.is_ascii_control())
}

fn quote(text: &str, shown: fn(char) -> bool) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c == quote => out.extend(['\\', c]),
            c if shown(c) => out.push(c),
            c => {
                // Writing to a String cannot fail.
                let _ = match u32::from(c) {
                    code @ 0..=0xFF => write!(out, "\\x{code:02x}"),
                    code @ 0x100..=0xFFFF => write!(out, "\\u{code:04x}"),
                    code => write!(out, "\\U{code:08x}"),
                };
            }
        }
    }
    out.push(quote);
    out
}

/// True if Python counts the character as printable. The `Debug` of Rust's `str` agrees, except for a combining
/// character at the beginning of a text, which Python prints; a letter before it avoids that case.
fn is_printable(c: char) -> bool {
    let text = ['a', c].iter().collect::<String>();
    c == '"' || c == '\'' || text.escape_debug().nth(1) != Some('\\')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected values were computed with Python 3.12.
    #[test]
    fn repr_and_ascii_are_those_of_python() {
        for (text, repr_of, ascii_of) in [
            ("ada", "'ada'", "'ada'"),
            ("it's", "\"it's\"", "\"it's\""),
            ("'\"", "'\\'\"'", "'\\'\"'"),
            ("a\\b", "'a\\\\b'", "'a\\\\b'"),
            ("nl\n", "'nl\\n'", "'nl\\n'"),
            ("é", "'é'", "'\\xe9'"),
            ("日", "'日'", "'\\u65e5'"),
            ("😀", "'😀'", "'\\U0001f600'"),
            ("\u{301}", "'\u{301}'", "'\\u0301'"),
            ("\u{a0}", "'\\xa0'", "'\\xa0'"),
            ("\u{200b}", "'\\u200b'", "'\\u200b'"),
            ("\u{7f}", "'\\x7f'", "'\\x7f'"),
        ] {
            assert_eq!(repr(text), repr_of);
            assert_eq!(ascii(text), ascii_of);
        }
    }
}

//! Lines of a container's log, as people may read them.

use super::credential::redact_line;

/// The largest length of a line, in bytes; the rest is cut off.
const MAX_LINE_BYTES: usize = 4096;

/// The largest length of all lines together, in bytes.
const MAX_BYTES: usize = 256 << 10;

/// The text in place of what was cut off.
const CUT: &str = "...";

/// The last lines of a log, without credentials and without the characters with which programs control a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLines {
    /// The lines, oldest first.
    pub lines: Vec<String>,
    /// True if lines are missing that were asked for, or if a line was cut.
    pub truncated: bool,
}

impl LogLines {
    /// Returns at most `count` lines of the end of `text`. `cut_off` is true if the text was cut at its end, so that its
    /// last line may be incomplete.
    pub fn last(text: &str, count: usize, cut_off: bool) -> Self {
        // A credential that was cut in two might not be recognized.
        let text = match text.rfind('\n') {
            Some(end) if cut_off => &text[..=end],
            None if cut_off => "",
            _ => text,
        };
        let (mut bytes, mut truncated, mut lines) = (0, cut_off, Vec::new());
        for line in text.lines().rev().take(count) {
            let shown = shown(line);
            bytes += shown.len();
            if bytes > MAX_BYTES {
                truncated = true;
                break;
            }
            truncated |= line.len() > MAX_LINE_BYTES;
            lines.push(shown);
        }
        lines.reverse();
        Self { lines, truncated }
    }
}

/// Returns a line as people may read it.
fn shown(line: &str) -> String {
    if line.len() <= MAX_LINE_BYTES {
        return redact_line(&printable(line));
    }
    let begin = &line[..line.floor_char_boundary(MAX_LINE_BYTES)];
    // The last word may be a part of a credential.
    let words = begin.rfind(char::is_whitespace).map_or("", |end| &begin[..end]);
    redact_line(&printable(words)) + CUT
}

/// Returns a line without the sequences and characters with which programs control a terminal.
pub(crate) fn printable(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            // A sequence such as `ESC [ 1 ; 31 m` ends with a letter or a sign after the digits.
            '\u{1b}' if chars.as_str().starts_with('[') => {
                chars.next();
                let _ = chars.by_ref().find(|c| matches!(c, '@'..='~'));
            }
            // Words that were apart stay apart: joined, a credential might not be recognized.
            c if c.is_control() => text.push(' '),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn last(text: &str, count: usize) -> Vec<String> {
        LogLines::last(text, count, false).lines
    }

    #[test]
    fn the_last_lines_are_shown_without_credentials_and_control_characters() {
        let text = "first\n  indented\t\u{1b}[31mred\u{1b}[0m\n\nAPI_TOKEN=abc failed\n";
        assert_eq!(last(text, 9), ["first", "  indented red", "", "API_TOKEN=<redacted> failed"]);
        assert_eq!(last(text, 1), ["API_TOKEN=<redacted> failed"]);
        assert_eq!(last(text, 0), Vec::<String>::new());
        assert_eq!(last("", 9), Vec::<String>::new());
        assert_eq!(last("no end", 9), ["no end"]);
        assert!(!LogLines::last(text, 9, false).truncated);
    }

    #[test]
    fn what_was_cut_is_left_out_so_that_no_part_of_a_credential_is_shown() {
        for (text, lines) in
            [("one\nghp_0123", vec!["one"]), ("ghp_0123", vec![]), ("one\ntwo\n", vec!["one", "two"])]
        {
            let lines: Vec<String> = lines.into_iter().map(str::to_owned).collect();
            assert_eq!(LogLines::last(text, 9, true), LogLines { lines, truncated: true }, "{text}");
        }
        let token = "ghp_0123456789abcdefghij";
        for padding in MAX_LINE_BYTES - 28..MAX_LINE_BYTES + 5 {
            let line = format!("{} {token} end", "x".repeat(padding));
            let shown = LogLines::last(&line, 1, false);
            assert!(
                shown.truncated && shown.lines[0].ends_with(CUT) && !shown.lines[0].contains("ghp_"),
                "{padding}"
            );
        }
        assert_eq!(last(&"x".repeat(MAX_LINE_BYTES + 1), 1), [CUT]);
    }

    #[test]
    fn the_newest_lines_are_kept_of_a_log_that_is_too_long() {
        let line = format!("{}\n", "word ".repeat(800));
        let text = format!("{}the end\n", line.repeat(1000));
        let shown = LogLines::last(&text, 1000, false);
        assert!(shown.truncated && shown.lines.len() < 100);
        assert_eq!(shown.lines.last().unwrap(), "the end");
    }

    proptest! {
        #[test]
        fn any_text_gives_few_short_lines(text in any::<String>(), count in 0_usize..20, cut_off: bool) {
            let LogLines { lines, .. } = LogLines::last(&text, count, cut_off);
            prop_assert!(lines.len() <= count);
            prop_assert!(lines.iter().all(|line| !line.contains(char::is_control)));
        }
    }
}

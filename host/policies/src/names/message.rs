use std::borrow::Cow;

/// The maximum length of a message of a policy, in bytes.
pub(crate) const MAX_MESSAGE_BYTES: usize = 2000;
/// The maximum number of messages that are passed on from one answer.
pub(crate) const MESSAGES: usize = 100;

/// Converts a message of a policy to a form that is safe to show: of bounded length, on one line, and without
/// characters that disguise other text.
pub(crate) fn message(mut text: String) -> String {
    let too_long = text.len() > MAX_MESSAGE_BYTES;
    text.truncate(text.floor_char_boundary(MAX_MESSAGE_BYTES));
    let mut text = one_line(&text).into_owned();
    if too_long {
        text.push_str(" ...");
    }
    text
}

/// Puts the text on one line, and removes characters that disguise other text.
pub(crate) fn one_line(text: &str) -> Cow<'_, str> {
    if text.chars().any(|c| c.is_control() || reorders(c)) {
        let shown = text.chars().filter(|c| !reorders(*c)).map(|c| if c.is_control() { ' ' } else { c });
        return shown.collect();
    }
    text.into()
}

/// Returns true for the marks with which Unicode changes the direction of text (UAX #9, `Bidi_Control`).
fn reorders(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_short_and_shows_what_it_says() {
        assert_eq!(message("Fragen Sie die Leitung, שלום.".into()), "Fragen Sie die Leitung, שלום.");
        assert_eq!(message("a\u{202e}b\0c\nd\u{1b}[2J".into()), "ab c d [2J");
        let long = message("é".repeat(1 << 20));
        assert!(long.len() <= MAX_MESSAGE_BYTES + 4 && long.ends_with("é ..."), "{}", long.len());
    }
}

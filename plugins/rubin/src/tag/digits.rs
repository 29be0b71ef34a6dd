/// Splits the digits off the beginning of a text, if there are any.
pub(super) fn digits(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|char: char| !char.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

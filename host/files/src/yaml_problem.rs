//! What is wrong with a YAML document, in one line.

use std::fmt::Display;

/// The first line of a parser's error. The others quote the document, which may hold secrets.
pub fn in_one_line(error: &impl Display) -> String {
    let error = error.to_string();
    error.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

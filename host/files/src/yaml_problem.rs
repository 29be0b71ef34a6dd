//! Describes errors in YAML documents in one line.

use std::fmt::Display;

/// Returns the first line of a parser's error. The other lines quote the document, which may contain secrets.
pub fn in_one_line(error: &impl Display) -> String {
    let error = error.to_string();
    error.lines().next().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

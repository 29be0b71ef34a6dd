use std::fmt;

use reqwest::StatusCode;
use serde::Deserialize;

use crate::cli::plain::plain;

/// An error response of the service, with the messages from its body.
#[derive(Debug)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    details: Vec<Detail>,
}

#[derive(Debug, Deserialize)]
struct Body {
    detail: Vec<Detail>,
}

#[derive(Debug, Deserialize)]
struct Detail {
    #[serde(default)]
    loc: Vec<String>,
    msg: String,
}

impl Refusal {
    /// Reads an error response. If a proxy in between sent it with another body, there are no details.
    pub(super) fn read(status: StatusCode, body: &[u8]) -> Self {
        let details = serde_json::from_slice::<Body>(body).map(|body| body.detail).unwrap_or_default();
        Self { status, details }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.details.is_empty() {
            return write!(
                f,
                "the answer is {} without an explanation; is --url that of the service?",
                self.status
            );
        }
        for (index, Detail { loc, msg }) in self.details.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            // The values in the path come from the command line, so their location would add nothing.
            match loc.as_slice() {
                [] => {}
                [part, ..] if part == "path" => {}
                [part, rest @ ..] if part == "body" && !rest.is_empty() => {
                    write!(f, "{}: ", plain(&rest.join(".")))?;
                }
                loc => write!(f, "{}: ", plain(&loc.join(".")))?,
            }
            f.write_str(&plain(msg))?;
        }
        Ok(())
    }
}

impl std::error::Error for Refusal {}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(status: u16, body: &str) -> String {
        Refusal::read(StatusCode::from_u16(status).unwrap(), body.as_bytes()).to_string()
    }

    #[test]
    fn the_messages_of_the_service_are_printed() {
        let two = r#"{"detail": [
            {"loc": ["body", "options", "size"], "msg": "is not a size", "type": "invalid_option"},
            {"loc": ["path", "username"], "msg": "no lab is running or starting", "type": "unknown_lab"}
        ], "request_id": "x"}"#;
        assert_eq!(printed(422, two), "options.size: is not a size\nno lab is running or starting");
        let denied = r#"{"detail": [{"loc": [], "msg": "Please ask \u001b[2J for access.", "type": "permission_denied"}]}"#;
        assert_eq!(printed(403, denied), "Please ask \\u{1b}[2J for access.");
    }

    #[test]
    fn an_answer_of_another_server_is_reported_with_its_status() {
        for body in ["", "<html>", "{\"detail\": \"no\"}", "{\"detail\": []}"] {
            assert_eq!(
                printed(502, body),
                "the answer is 502 Bad Gateway without an explanation; is --url that of the service?"
            );
        }
    }
}

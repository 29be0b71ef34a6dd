//! What JupyterHub calls people and their servers.

use super::Problem;
use super::parsed::parsed_name;

/// The longest accepted username or server name, in bytes of UTF-8. JupyterHub's columns hold 255 characters; bytes
/// are the tighter reading, and the one that file systems apply to a home directory's name.
const LONGEST: usize = 255;

parsed_name! {
    /// A JupyterHub username, raw: 1 to 255 bytes of almost any Unicode.
    ///
    /// Refused, as JupyterHub refuses them: `/`, white space at either end. Refused here as well: control characters
    /// (the `escape` slug of `"\x041"` is that of `"A"`) and the path steps `.` and `..`.
    Username, "username", check_username
}

parsed_name! {
    /// A JupyterHub server name, raw. Empty for the user's default server; otherwise the rules of [`Username`].
    #[derive(Default)]
    ServerName, "server name", check_server_name
}

impl ServerName {
    /// True for the user's default server, the one without a name.
    pub fn is_default(&self) -> bool {
        self.as_str().is_empty()
    }
}

fn check_username(value: &str) -> Result<(), Problem> {
    if value.is_empty() {
        return Err(Problem::Empty);
    }
    if value.len() > LONGEST {
        return Err(Problem::TooLong { length: value.len(), limit: LONGEST });
    }
    if let Some(control) = value.chars().find(|c| c.is_control()) {
        return Err(Problem::Control(control));
    }
    if value.contains('/') {
        return Err(Problem::Forbidden('/'));
    }
    if value == "." || value == ".." {
        return Err(Problem::PathStep);
    }
    if value.trim() != value {
        return Err(Problem::OuterSpace);
    }
    Ok(())
}

fn check_server_name(value: &str) -> Result<(), Problem> {
    if value.is_empty() { Ok(()) } else { check_username(value) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_people_have_are_accepted() {
        for name in
            ["ada", "ada.lovelace@example.org", "日本語", "a--b", "...", "Some Name", "K", "x:y", "😀"]
        {
            assert_eq!(Username::parse(name).unwrap(), name);
        }
        assert!(Username::parse("x".repeat(255)).is_ok());
        assert!(ServerName::parse("").unwrap().is_default());
    }

    #[test]
    fn names_that_break_a_rule_say_which() {
        let too_long = "ü".repeat(128);
        for (name, problem) in [
            ("", Problem::Empty),
            ("a/b", Problem::Forbidden('/')),
            ("../../etc", Problem::Forbidden('/')),
            ("\u{4}1", Problem::Control('\u{4}')),
            ("nl\n", Problem::Control('\n')),
            ("a\u{85}b", Problem::Control('\u{85}')),
            (".", Problem::PathStep),
            ("..", Problem::PathStep),
            (" ada", Problem::OuterSpace),
            (&too_long, Problem::TooLong { length: 256, limit: 255 }),
        ] {
            assert_eq!(Username::parse(name).unwrap_err().problem, problem, "{name:?}");
        }
        assert!(ServerName::parse("a/b").is_err());
    }

    #[test]
    fn serde_checks_too() {
        assert!(serde_json::from_str::<Username>(r#""ada""#).is_ok());
        let error = serde_json::from_str::<Username>(r#""a/b""#).unwrap_err();
        assert!(error.to_string().contains("username \"a/b\" contains '/'"), "{error}");
    }
}

//! Names of JupyterHub's users and servers.

use super::Problem;
use super::parsed::parsed_name;

/// Largest length of a username or server name in bytes of UTF-8. JupyterHub's database columns hold 255 characters;
/// file systems limit the name of a home directory to 255 bytes, which is the stricter limit.
const MAX_NAME_LENGTH: usize = 255;

parsed_name! {
    /// A raw JupyterHub username: 1 to 255 bytes of almost any Unicode.
    ///
    /// As in JupyterHub, `/` and white space at either end are refused. This service also refuses control characters
    /// (the `escape` slug of `"\x041"` is that of `"A"`) and the names `.` and `..`, which have a meaning in paths.
    Username, "username", check_username
}

parsed_name! {
    /// A raw JupyterHub server name. Empty for the user's default server; otherwise the rules are those of
    /// [`Username`].
    #[derive(Default)]
    ServerName, "server name", check_server_name
}

impl ServerName {
    /// True for the user's default server, which has the empty name.
    pub fn is_default(&self) -> bool {
        self.as_str().is_empty()
    }
}

fn check_username(value: &str) -> Result<(), Problem> {
    if value.is_empty() {
        return Err(Problem::Empty);
    }
    if value.len() > MAX_NAME_LENGTH {
        return Err(Problem::TooLong { length: value.len(), limit: MAX_NAME_LENGTH });
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
    fn ordinary_names_of_people_are_accepted() {
        for name in
            ["ada", "ada.lovelace@example.org", "日本語", "a--b", "...", "Some Name", "K", "x:y", "😀"]
        {
            assert_eq!(Username::parse(name).unwrap(), name);
        }
        assert!(Username::parse("x".repeat(255)).is_ok());
        assert!(ServerName::parse("").unwrap().is_default());
    }

    #[test]
    fn the_error_of_an_invalid_name_says_which_rule_it_breaks() {
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
    fn deserialization_refuses_invalid_names() {
        assert!(serde_json::from_str::<Username>(r#""ada""#).is_ok());
        let error = serde_json::from_str::<Username>(r#""a/b""#).unwrap_err();
        assert!(error.to_string().contains("username \"a/b\" contains '/'"), "{error}");
    }
}

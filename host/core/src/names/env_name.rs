//! Names of environment variables.

use super::Problem;
use super::parsed::parsed_name;

/// Largest length in bytes. A variable is a key of a `ConfigMap` or, with the prefix `env.`, of a `Secret`, and such
/// keys have at most 253.
const MAX_NAME_LENGTH: usize = 249;

parsed_name! {
    /// The name of an environment variable: letters, digits, `_`, `-` and `.`, not starting with a digit.
    ///
    /// Every Kubernetes release accepts this rule; newer releases accept any printable ASCII character except `=`.
    EnvName, "environment variable name", check
}

fn check(value: &str) -> Result<(), Problem> {
    if value.is_empty() {
        return Err(Problem::Empty);
    }
    if value.len() > MAX_NAME_LENGTH {
        return Err(Problem::TooLong { length: value.len(), limit: MAX_NAME_LENGTH });
    }
    let inside = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-' | b'.');
    let path_step = value == "." || value.starts_with("..");
    if value.bytes().all(inside) && !value.starts_with(|c: char| c.is_ascii_digit()) && !path_step {
        return Ok(());
    }
    Err(Problem::Shape("letters, digits, '_', '-' and '.', not starting with a digit or '..'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_that_kubernetes_accepts_are_parsed() {
        for good in ["HOME", "_x", "a-b.c", "JUPYTERHUB_API_TOKEN"] {
            assert!(EnvName::parse(good).is_ok(), "{good}");
        }
        assert!(EnvName::parse("A".repeat(249)).is_ok() && EnvName::parse("A".repeat(250)).is_err());
        for bad in ["", "1A", "A=B", "A B", "ü", ".", "..", "..a", "A\n", "A\0"] {
            assert!(EnvName::parse(bad).is_err(), "{bad}");
        }
    }
}

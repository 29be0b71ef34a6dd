//! Names of the kernels and pools that a lab starts.

use super::Problem;
use super::parsed::parsed_name;

/// Largest length of a child's name. Jupyter's kernel ids have 36 characters.
const MAX_NAME_LENGTH: usize = 64;

parsed_name! {
    /// The name of a kernel or a Dask pool, unique among those of one lab: 1 to 64 ASCII letters, digits, `-`, `_` and
    /// `.`, beginning with a letter or a digit. The id that Jupyter gives to a kernel is its name.
    ChildName, "name of a kernel or pool", check
}

fn check(value: &str) -> Result<(), Problem> {
    if value.is_empty() {
        return Err(Problem::Empty);
    }
    if value.len() > MAX_NAME_LENGTH {
        return Err(Problem::TooLong { length: value.len(), limit: MAX_NAME_LENGTH });
    }
    let allowed =
        |(at, c): (usize, char)| c.is_ascii_alphanumeric() || at > 0 && matches!(c, '-' | '_' | '.');
    match value.chars().enumerate().find(|found| !allowed(*found)) {
        Some((_, c)) => Err(Problem::Forbidden(c)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_jupyter_are_names() {
        for name in ["4d1a30f9-3e9b-4f6e-8f0a-7a1a0ecb2a1f", "a", "0", "Kernel_1.2-x"] {
            assert_eq!(ChildName::parse(name).unwrap(), name);
        }
    }

    #[test]
    fn nothing_that_means_something_in_a_path_is_a_name() {
        let too_long = "x".repeat(65);
        for (name, problem) in [
            ("", Problem::Empty),
            ("..", Problem::Forbidden('.')),
            ("-a", Problem::Forbidden('-')),
            ("a/b", Problem::Forbidden('/')),
            ("a b", Problem::Forbidden(' ')),
            ("ä", Problem::Forbidden('ä')),
            (&too_long, Problem::TooLong { length: 65, limit: 64 }),
        ] {
            assert_eq!(ChildName::parse(name).unwrap_err().problem, problem, "{name:?}");
        }
    }
}

//! Names of the groups of workers of a Dask pool.

use super::Problem;
use super::parsed::parsed_name;

/// Largest length of a group's name.
const MAX_NAME_LENGTH: usize = 20;

parsed_name! {
    /// The name of a group of workers, unique within its Dask pool: 1 to 20 lower-case ASCII letters, digits and `-`,
    /// beginning with a letter and not ending with `-`. It is a label's value, and the resource by which Dask's tasks
    /// ask for the group.
    WorkerGroupName, "name of a group of workers", check
}

fn check(value: &str) -> Result<(), Problem> {
    if value.is_empty() {
        return Err(Problem::Empty);
    }
    if value.len() > MAX_NAME_LENGTH {
        return Err(Problem::TooLong { length: value.len(), limit: MAX_NAME_LENGTH });
    }
    let last = value.chars().count() - 1;
    let allowed = |(at, c): (usize, char)| match c {
        'a'..='z' => true,
        '0'..='9' => at > 0,
        '-' => at > 0 && at < last,
        _ => false,
    };
    value
        .chars()
        .enumerate()
        .find(|found| !allowed(*found))
        .map_or(Ok(()), |(_, c)| Err(Problem::Forbidden(c)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_has_a_short_name_in_lower_case() {
        for name in ["a", "gpu", "high-mem-2", "abcdefghijklmnopqrst"] {
            assert_eq!(WorkerGroupName::parse(name).unwrap(), name);
        }
        for (name, problem) in [
            ("", Problem::Empty),
            ("GPU", Problem::Forbidden('G')),
            ("2x", Problem::Forbidden('2')),
            ("-a", Problem::Forbidden('-')),
            ("a-", Problem::Forbidden('-')),
            ("a b", Problem::Forbidden(' ')),
            ("a=1", Problem::Forbidden('=')),
            ("ä", Problem::Forbidden('ä')),
            ("abcdefghijklmnopqrstu", Problem::TooLong { length: 21, limit: 20 }),
        ] {
            assert_eq!(WorkerGroupName::parse(name).unwrap_err().problem, problem, "{name:?}");
        }
    }
}

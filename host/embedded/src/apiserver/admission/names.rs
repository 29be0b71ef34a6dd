//! The forms of names.

use uuid::Uuid;

/// Letters and digits that make no words and are not mistaken for each other.
const ALPHABET: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
const SUFFIX: usize = 5;
/// Longest prefix that leaves room for the suffix within a DNS label.
const PREFIX: usize = 63 - SUFFIX;

/// A name with a random end.
pub(in crate::apiserver) fn generated_name(prefix: &str) -> String {
    let kept: String = prefix.chars().take(PREFIX).collect();
    let random = Uuid::new_v4();
    let suffix: String = random
        .as_bytes()
        .iter()
        .take(SUFFIX)
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect();
    kept + &suffix
}

/// Why a text is not a DNS label (RFC 1123): at most 63 of `a-z0-9-`, ending in letters or digits.
pub(super) fn label_error(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!is_label(text)).then(|| {
        "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
         end with an alphanumeric character"
            .to_owned()
    })
}

/// Why a text is not a DNS subdomain (RFC 1123): labels with dots between them, at most 253 characters.
pub(super) fn subdomain_error(text: &str) -> Option<String> {
    if text.len() > 253 {
        return Some("must be no more than 253 characters".to_owned());
    }
    (!text.split('.').all(is_label)).then(|| {
        "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must \
         start and end with an alphanumeric character"
            .to_owned()
    })
}

/// Why a text cannot be part of a path.
pub(super) fn path_error(text: &str) -> Option<String> {
    let bad = matches!(text, "." | "..") || text.contains(['/', '%']);
    bad.then(|| "may not be '.' or '..' and may not contain '/' or '%'".to_owned())
}

fn is_label(text: &str) -> bool {
    let inner = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    !text.is_empty()
        && text.bytes().all(|b| inner(b) || b == b'-')
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Why a text is not the key of a label or annotation: `[subdomain/]name`.
pub(super) fn qualified_error(text: &str) -> Option<String> {
    let (prefix, name) = match text.rsplit_once('/') {
        Some((prefix, name)) => (Some(prefix), name),
        None => (None, text),
    };
    if let Some(error) = prefix.and_then(subdomain_error) {
        return Some(format!("prefix part {error}"));
    }
    if name.is_empty() || name.len() > 63 {
        return Some("name part must be 1 to 63 characters".to_owned());
    }
    (!is_qualified_part(name)).then(|| {
        "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
         alphanumeric character"
            .to_owned()
    })
}

/// Why a text is not the value of a label.
pub(super) fn label_value_error(text: &str) -> Option<String> {
    if text.len() > 63 {
        return Some("must be no more than 63 characters".to_owned());
    }
    (!text.is_empty() && !is_qualified_part(text)).then(|| {
        "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must \
         start and end with an alphanumeric character"
            .to_owned()
    })
}

fn is_qualified_part(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.ends_with(|c: char| c.is_ascii_alphanumeric())
}

/// Why a text is not the key of a `ConfigMap` or `Secret`.
pub(super) fn data_key_error(text: &str) -> Option<String> {
    if text.is_empty() || text.len() > 253 {
        return Some("must be 1 to 253 characters".to_owned());
    }
    let fits = text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'));
    (!fits || text == "." || text.starts_with("..")).then(|| {
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.', and may not be '.' or start \
         with '..'"
            .to_owned()
    })
}

/// Why a text is not the name of a port (RFC 6335): at most 15 of `a-z0-9-`, a letter among them.
pub(super) fn port_error(text: &str) -> Option<String> {
    if text.len() > 15 {
        return Some("must be no more than 15 characters".to_owned());
    }
    let fits = is_label(text) && !text.contains("--") && text.bytes().any(|b| b.is_ascii_lowercase());
    (!fits).then(|| {
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-), at least one of them a letter; \
         hyphens neither together nor at an end"
            .to_owned()
    })
}

/// Why a text is not the name of an environment variable. Anything printable but `=` has been valid since
/// Kubernetes 1.32.
pub(super) fn env_error(text: &str) -> Option<String> {
    let bad = text.is_empty() || text.bytes().any(|b| b == b'=' || !(b' '..=b'~').contains(&b));
    bad.then(|| {
        "a valid environment variable name must consist only of printable ASCII characters other than '='"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::{
        data_key_error, env_error, generated_name, label_error, label_value_error, path_error, port_error,
        qualified_error, subdomain_error,
    };

    #[test]
    fn generated_names_fit_a_label_and_differ() {
        let name = generated_name("lab-");
        assert!(name.starts_with("lab-") && name.len() == 9, "{name}");
        assert_ne!(generated_name("a-"), generated_name("a-"));
        assert_eq!(generated_name(&"x".repeat(100)).len(), 63);
        assert_eq!(label_error(&generated_name("x")), None);
    }

    type Rule = fn(&str) -> Option<String>;

    #[test]
    fn forms_of_names() {
        let long = "a".repeat(64);
        let table: &[(Rule, &[&str], &[&str])] = &[
            (label_error, &["a", "a-1", "9"], &["", "A", "-a", "a-", "a.b", "a_b", &long]),
            (subdomain_error, &["a", "a.b-c", &long], &["", "a..b", ".a", "A.b", "a.-b"]),
            (path_error, &["a", "system:x"], &[".", "..", "a/b", "a%b"]),
            (qualified_error, &["a", "A_b.c", "x.io/y"], &["", "/a", "X.io/y", "x.io/", "-a", &long]),
            (label_value_error, &["", "a", "A_b.c"], &["-a", "a b", &long]),
            (data_key_error, &["a.txt", ".hidden", "A_b"], &["", ".", "..a", "a/b", "a b"]),
            (port_error, &["http", "a-1"], &["", "80", "a--b", "-a", "A", "a123456789012345"]),
            (env_error, &["A", "my.var", "1", "a b"], &["", "A=B", "ü"]),
        ];
        for (i, (error, good, bad)) in table.iter().enumerate() {
            for text in *good {
                assert_eq!(error(text), None, "{i} {text:?}");
            }
            for text in *bad {
                assert!(error(text).is_some(), "{i} {text:?}");
            }
        }
    }
}

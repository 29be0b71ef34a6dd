//! Recognizes credentials by their names, and URLs with passwords.

/// The text in place of a value that must not be shown.
pub const REDACTED: &str = "<redacted>";

/// Words in a variable's name which show that its value is a credential.
const WORDS: [&str; 14] = [
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "JWT",
    "COOKIE",
    "KEYTAB",
];

/// Words that show the same at the end of a longer name. `PWD` alone is the working directory.
const LAST_WORDS: [&str; 5] = ["PASS", "PWD", "DSN", "PAT", "PSK"];

/// Pairs of adjacent words that show the same.
const PAIRS: [(&str, &str); 9] = [
    ("API", "KEY"),
    ("ACCESS", "KEY"),
    ("PRIVATE", "KEY"),
    ("SIGNING", "KEY"),
    ("ENCRYPTION", "KEY"),
    ("SSH", "KEY"),
    ("CONNECTION", "STRING"),
    ("DATABASE", "URL"),
    ("DB", "URL"),
];

/// True if the name of a variable or field says that its value is a credential.
pub fn is_named_as_credential(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(['_', '-', '.']).collect();
    words.iter().any(|word| WORDS.contains(word))
        || words.windows(2).any(|pair| PAIRS.iter().any(|(first, second)| pair == [*first, *second]))
        || words.len() > 1 && words.last().is_some_and(|word| LAST_WORDS.contains(word))
}

/// True for `scheme://user:password@host`, also among other text.
pub fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '\n', '"', '\'']).next().unwrap_or_default();
        let user_info = authority.rsplit_once('@').map(|(user_info, _)| user_info);
        user_info
            .and_then(|user_info| user_info.split_once(':'))
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

/// Returns a line of a log with the values replaced that are probably credentials: after a name such as `API_TOKEN`, after
/// `Bearer`, and URLs with passwords. A program may print a credential in other ways, too.
pub fn redact_line(line: &str) -> String {
    let is_end = |c: char| c.is_whitespace() || "&?;,\"'(){}[]".contains(c);
    let mut shown = String::with_capacity(line.len());
    let mut before = Before::Other;
    for piece in line.split_inclusive(is_end) {
        let word = piece.trim_end_matches(is_end);
        let (name, value) = match word.find(['=', ':']) {
            Some(at) => word.split_at(at),
            None => (word, ""),
        };
        if word.is_empty() {
            // A quotation mark between a name and its value, for example.
        } else if before == Before::Separator || has_password(word) {
            shown.push_str(REDACTED);
            before = Before::Other;
        } else if name.is_empty() && value.len() == 1 && before == Before::Name {
            shown.push_str(word);
            before = Before::Separator;
        } else if is_named_as_credential(name) && value.len() > 1 {
            shown.push_str(&word[..=name.len()]);
            shown.push_str(REDACTED);
            before = Before::Other;
        } else {
            shown.push_str(word);
            before = match value.len() {
                0 if ["bearer", "basic"].contains(&word.to_ascii_lowercase().as_str()) => Before::Separator,
                0 if is_named_as_credential(name) => Before::Name,
                1 if is_named_as_credential(name) => Before::Separator,
                _ => Before::Other,
            };
        }
        shown.push_str(&piece[word.len()..]);
    }
    shown
}

/// The word before another one in a line.
#[derive(PartialEq)]
enum Before {
    Other,
    /// The name of a credential, whose value follows after `:` or `=`.
    Name,
    /// The next word is the value of a credential.
    Separator,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn values_of_credentials_are_replaced_and_nothing_else() {
        for (line, expected) in [
            ("ModuleNotFoundError: No module named 'jupyterhub'", None),
            ("PATH=/usr/bin: not found", None),
            ("API_TOKEN=abc failed", Some("API_TOKEN=<redacted> failed")),
            ("password: hunter2, user: ada", Some("password: <redacted>, user: ada")),
            ("{\"api_key\": \"abc\", \"x\": 1}", Some("{\"api_key\": \"<redacted>\", \"x\": 1}")),
            ("password = hunter2", Some("password = <redacted>")),
            ("the token is not valid: ask again", None),
            ("GET /user/ada/lab?token=abc&x=1", Some("GET /user/ada/lab?token=<redacted>&x=1")),
            ("Authorization: Bearer abc.def", Some("Authorization: Bearer <redacted>")),
            ("cannot reach postgres://ada:pw@db/x", Some("cannot reach <redacted>")),
        ] {
            assert_eq!(redact_line(line), expected.unwrap_or(line));
        }
    }

    proptest! {
        #[test]
        fn a_token_after_its_name_is_never_shown(before in "[ -~]{0,30}", after in "[ -~]{0,30}") {
            let shown = redact_line(&format!("{before} JPY_API_TOKEN=s3cr3tvalue {after}"));
            prop_assert!(!shown.contains("s3cr3tvalue"), "{shown}");
        }
    }
}

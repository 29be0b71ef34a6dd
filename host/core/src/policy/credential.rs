//! Decides which environment variables are credentials.

use crate::config::lab::LabSection;

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

/// True if the value of the variable must not be shown: the configuration lists the variable, its name says so, or the
/// value is a URL with a password.
pub fn is_credential(name: &str, value: &str, config: &LabSection) -> bool {
    config.credential_env.iter().any(|listed| listed == name) || named_so(name) || has_password(value)
}

fn named_so(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(['_', '-', '.']).collect();
    words.iter().any(|word| WORDS.contains(word))
        || words.windows(2).any(|pair| PAIRS.iter().any(|(first, second)| pair == [*first, *second]))
        || words.len() > 1 && words.last().is_some_and(|word| LAST_WORDS.contains(word))
}

/// True for `scheme://user:password@host`, also among other text.
fn has_password(value: &str) -> bool {
    value.split("://").skip(1).any(|rest| {
        let authority = rest.split(['/', '?', '#', ' ', '\n', '"', '\'']).next().unwrap_or_default();
        let user_info = authority.rsplit_once('@').map(|(user_info, _)| user_info);
        user_info
            .and_then(|user_info| user_info.split_once(':'))
            .is_some_and(|(_, password)| !password.is_empty())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_recognized_by_their_names() {
        let config = LabSection::default();
        for name in [
            "JUPYTERHUB_API_TOKEN",
            "JPY_API_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "db-password",
            "OPENAI_API_KEY",
            "SMTP_PASS",
            "MYSQL_PWD",
            "SENTRY_DSN",
            "GITHUB_PAT",
            "DATABASE_URL",
            "GPG_PASSPHRASE",
            "AZURE_STORAGE_CONNECTION_STRING",
        ] {
            assert!(is_credential(name, "x", &config), "{name}");
        }
        for name in [
            "JUPYTERHUB_API_URL",
            "TOKENIZERS_PARALLELISM",
            "KEYBOARD",
            "MEM_LIMIT",
            "API_URL",
            "PWD",
            "PASS_THROUGH",
            "PATH",
        ] {
            assert!(!is_credential(name, "x", &config), "{name}");
        }
    }

    #[test]
    fn a_url_with_a_password_is_a_credential_whatever_its_name_is() {
        let config = LabSection::default();
        for (value, expected) in [
            ("postgres://ada:s3cret@db.example.org/x", true),
            ("https://:token@git.example.org", true),
            ("first http://a/b then redis://u:p@h:6379", true),
            ("https://ada@example.org/x:y@z", false),
            ("http://hub:8081/hub/api", false),
            ("ada:secret@example.org", false),
            ("", false),
        ] {
            assert_eq!(is_credential("WHERE", value, &config), expected, "{value}");
        }
    }
}

//! Decides which environment variables are credentials.

use crate::config::lab::LabSection;
use crate::values::credential::{has_password, is_named_as_credential};

/// True if the value of the variable must not be shown: the configuration lists the variable, its name says so, or the
/// value is a URL with a password.
pub fn is_credential(name: &str, value: &str, config: &LabSection) -> bool {
    config.credential_env.iter().any(|listed| listed == name)
        || is_named_as_credential(name)
        || has_password(value)
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

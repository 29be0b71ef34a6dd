//! Decides which environment variables are credentials.

use crate::config::lab::LabSection;

/// Words in a variable's name which show that its value is a credential.
const WORDS: [&str; 9] =
    ["TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWORDS", "PASSWD", "CREDENTIAL", "CREDENTIALS"];

/// Pairs of adjacent words which show the same.
const PAIRS: [(&str, &str); 3] = [("API", "KEY"), ("ACCESS", "KEY"), ("PRIVATE", "KEY")];

/// True if the value of the variable `name` must not be shown: the configuration lists it, or its name contains one of
/// the words.
pub fn is_credential(name: &str, config: &LabSection) -> bool {
    if config.credential_env.iter().any(|listed| listed == name) {
        return true;
    }
    let upper = name.to_ascii_uppercase();
    let words: Vec<&str> = upper.split(['_', '-', '.']).collect();
    words.iter().any(|word| WORDS.contains(word) || *word == "APIKEY")
        || words.windows(2).any(|pair| PAIRS.iter().any(|(first, second)| pair == [*first, *second]))
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
        ] {
            assert!(is_credential(name, &config), "{name}");
        }
        for name in ["JUPYTERHUB_API_URL", "TOKENIZERS_PARALLELISM", "KEYBOARD", "MEM_LIMIT", "API_URL"] {
            assert!(!is_credential(name, &config), "{name}");
        }
    }
}

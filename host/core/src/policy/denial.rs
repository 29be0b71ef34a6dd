use std::fmt;

use serde::{Serialize, Serializer};

/// The reason why a user may not do something. Without the name of a rule, its JSON is the message alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The message for the user.
    pub message: String,
    /// The rule of the policy, if it has a name.
    pub rule: Option<String>,
}

impl From<String> for Denial {
    fn from(message: String) -> Self {
        Self { message, rule: None }
    }
}

impl From<&str> for Denial {
    fn from(message: &str) -> Self {
        message.to_owned().into()
    }
}

impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Serialize for Denial {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Named<'a> {
            message: &'a str,
            rule: &'a str,
        }
        let Self { message, rule } = self;
        match rule {
            None => message.serialize(serializer),
            Some(rule) => Named { message, rule }.serialize(serializer),
        }
    }
}

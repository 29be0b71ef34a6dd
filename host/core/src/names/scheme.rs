//! The two slug schemes, and the rules to choose from where KubeSpawner's documentation and its code differ.

use serde::{Deserialize, Serialize};

use super::slug::{self, FIELD};

/// The scheme of the slugs `{username}`, `{servername}` and `{user_server}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlugScheme {
    /// Always gives a valid name of at most 48 characters. The default since KubeSpawner 7.
    #[default]
    Safe,
    /// The scheme before KubeSpawner 7. Its names are unique, but Kubernetes refuses some of them.
    Escape,
}

impl SlugScheme {
    /// The scheme's name in the configuration.
    pub fn as_str(self) -> &'static str {
        match self {
            SlugScheme::Safe => "safe",
            SlugScheme::Escape => "escape",
        }
    }
}

/// Which rule applies where KubeSpawner's documentation and its code differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Compat {
    /// The code of release 7.1.0. This is the default, because existing volumes have these names.
    #[default]
    #[serde(rename = "7.1.0")]
    V7_1_0,
    /// The documentation ("Templated fields").
    #[serde(rename = "documented")]
    Documented,
}

/// The result of a slug scheme: `a-z 0-9 -`, or empty for the default server.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize)]
pub struct Slug(String);

impl Slug {
    /// The slug itself.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for Slug {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}

/// The slugs of one user and server under one scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Slugs {
    pub(super) username: Slug,
    pub(super) servername: Slug,
    pub(super) user_server: Slug,
}

pub(super) fn safe(username: &str, servername: &str, compat: Compat) -> Slugs {
    let is_safe = match compat {
        Compat::V7_1_0 => slug::is_object,
        // The page lets slugs begin with a number, and does not change what is safe.
        Compat::Documented => slug::is_label,
    };
    let user = slug::safe(username, is_safe, Some(FIELD));
    let server =
        if servername.is_empty() { String::new() } else { slug::safe(servername, is_safe, Some(FIELD)) };
    let user_server = safe_user_server((username, &user), (servername, &server), compat);
    Slugs { username: Slug(user), servername: Slug(server), user_server: Slug(user_server) }
}

/// Returns the `safe` slug of a user and server; each argument is a raw name and its slug.
fn safe_user_server(user: (&str, &str), server: (&str, &str), compat: Compat) -> String {
    let too_long = user.1.len() + server.1.len() + 2 > FIELD;
    let hashed = match compat {
        // KubeSpawner counts the joining `--` even where there is no server, so that a user's slug of 47 or 48 is
        // hashed.
        Compat::V7_1_0 => too_long,
        Compat::Documented => !server.0.is_empty() && (too_long || user.0 != user.1 || server.0 != server.1),
    };
    if hashed {
        slug::multi(&[user.0, server.0], FIELD)
    } else if server.1.is_empty() {
        user.1.to_owned()
    } else {
        format!("{}--{}", user.1, server.1)
    }
}

/// Returns the escaped slugs, and the value of `{escaped_user_server}`, which ends differently.
pub(super) fn escape(username: &str, servername: &str, compat: Compat) -> (Slugs, Slug) {
    let user = slug::escape(username);
    let server = slug::escape(servername);
    let joined = format!("{user}--{server}");
    let user_server = if server.is_empty() { user.clone() } else { joined.clone() };
    let field = match compat {
        Compat::V7_1_0 => joined,
        Compat::Documented => joined.trim_end_matches('-').to_owned(),
    };
    (Slugs { username: Slug(user), servername: Slug(server), user_server: Slug(user_server) }, Slug(field))
}

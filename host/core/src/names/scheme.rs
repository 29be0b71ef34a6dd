//! The two ways to make a slug of a name, and whose word counts where page and code of KubeSpawner differ.

use serde::{Deserialize, Serialize};

use super::slug::{self, FIELD};

/// How `{username}`, `{servername}` and `{user_server}` are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum SlugScheme {
    /// Always a valid name of at most 48 characters; the default since KubeSpawner 7.
    #[default]
    Safe,
    /// The scheme before KubeSpawner 7: unique, but Kubernetes refuses some of its names.
    Escape,
}

impl SlugScheme {
    /// The scheme as configurations spell it.
    pub fn as_str(self) -> &'static str {
        match self {
            SlugScheme::Safe => "safe",
            SlugScheme::Escape => "escape",
        }
    }
}

/// Which KubeSpawner decides where its documentation and its behaviour differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize, schemars::JsonSchema)]
pub enum Compat {
    /// What release 7.1.0 does. Existing volumes carry these names, so this is the default.
    #[default]
    #[serde(rename = "7.1.0")]
    V7_1_0,
    /// What the page "Templated fields" says.
    #[serde(rename = "documented")]
    Documented,
}

/// A name that went through a slug scheme: `a-z 0-9 -`, or empty for the default server.
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
    let user = slug::safe(username, slug::is_object, Some(FIELD));
    let server = if servername.is_empty() {
        String::new()
    } else {
        slug::safe(servername, slug::is_object, Some(FIELD))
    };
    let user_server = safe_user_server((username, &user), (servername, &server), compat);
    Slugs { username: Slug(user), servername: Slug(server), user_server: Slug(user_server) }
}

/// Both arguments are a raw name and its slug.
fn safe_user_server(user: (&str, &str), server: (&str, &str), compat: Compat) -> String {
    let too_long = user.1.len() + server.1.len() + 2 > FIELD;
    let hashed = match compat {
        // Counts the joint even where there is no server, so that a user's slug of 47 or 48 is hashed.
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

/// The escaped slugs, and what the template field `{escaped_user_server}` holds, which differs in its end.
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

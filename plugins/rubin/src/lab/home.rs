use wasmspawner_sdk::{Error, Section};

/// The location of users' homes in their labs.
pub(crate) struct Home {
    prefix: String,
    schema: Schema,
    suffix: String,
}

#[derive(Clone, Copy, PartialEq)]
enum Schema {
    /// `/home/ada`
    Username,
    /// `/home/a/ada`
    InitialThenUsername,
}

impl Default for Home {
    fn default() -> Self {
        Self { prefix: "/home".into(), schema: Schema::Username, suffix: String::new() }
    }
}

impl Home {
    pub(super) fn read(lab: &mut Section<'_>) -> Self {
        let schema = |text: &str| match text {
            "username" => Ok(Schema::Username),
            "initialThenUsername" => Ok(Schema::InitialThenUsername),
            _ => Err("must be username or initialThenUsername"),
        };
        // Nublado's name of the key is `homedirSchema`.
        let schema = lab.parsed("homedirSchema", schema).or(lab.parsed("homeDirectorySchema", schema));
        let prefix: Option<String> = lab.optional("homedirPrefix");
        let suffix: String = lab.or_default("homedirSuffix");
        let home = Self {
            prefix: prefix.map_or_else(|| "/home".into(), |prefix| prefix.trim_end_matches('/').into()),
            schema: schema.unwrap_or(Schema::Username),
            suffix: suffix.trim_matches('/').into(),
        };
        if !home.prefix.starts_with('/') {
            lab.problem("homedirPrefix", "must be an absolute path below /");
        }
        for (key, path) in [("homedirPrefix", &home.prefix), ("homedirSuffix", &home.suffix)] {
            if path.split('/').any(|part| part == "..") {
                lab.problem(key, "must not contain `..`");
            }
        }
        if home.prefix != "/home" || home.schema != Schema::Username || !home.suffix.is_empty() {
            let home = home.template();
            let passwd =
                format!("set `lab.user_files.home` of the service's configuration to {home} for /etc/passwd");
            lab.warning("", &format!("homes are not /home/USERNAME: {passwd}"));
        }
        home
    }

    /// The homes as a template of the service.
    fn template(&self) -> String {
        let Self { prefix, schema, suffix } = self;
        let initial = if *schema == Schema::Username { "" } else { "/{username:.1}" };
        let suffix = if suffix.is_empty() { String::new() } else { format!("/{suffix}") };
        format!("{prefix}{initial}/{{username}}{suffix}")
    }

    /// The directory of the homes.
    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The home of a user.
    pub(crate) fn of(&self, username: &str) -> Result<String, Error> {
        let first = username.chars().next().filter(|first| *first != '.' && !username.contains(['/', '\0']));
        let Some(first) = first else {
            return Err(Error::Internal(format!("`{username}` cannot be the name of a home")));
        };
        let Self { prefix, schema, suffix } = self;
        let home = match schema {
            Schema::Username => format!("{prefix}/{username}"),
            Schema::InitialThenUsername => format!("{prefix}/{first}/{username}"),
        };
        Ok(if suffix.is_empty() { home } else { format!("{home}/{suffix}") })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wasmspawner_sdk::config;

    use super::*;

    fn home(lab: &Value) -> Result<(Home, Vec<String>), Vec<wasmspawner_sdk::FieldError>> {
        config::check(&lab.to_string(), Home::read)
    }

    #[test]
    fn homes_have_the_paths_of_nublado() {
        for (lab, expected, warnings) in [
            (json!({}), "/home/ada", 0),
            (json!({"homedirPrefix": "/u/", "homedirSchema": "initialThenUsername"}), "/u/a/ada", 1),
            (json!({"homeDirectorySchema": "initialThenUsername"}), "/home/a/ada", 1),
            (json!({"homedirSuffix": "/rsp/"}), "/home/ada/rsp", 1),
        ] {
            let (home, warned) = home(&lab).unwrap();
            assert_eq!(home.of("ada").unwrap(), expected);
            assert_eq!(warned.len(), warnings, "{lab}");
        }
    }

    #[test]
    fn wrong_paths_are_errors() {
        for lab in [
            json!({"homedirPrefix": "home"}),
            json!({"homedirPrefix": "/"}),
            json!({"homedirSuffix": "../.."}),
            json!({"homedirSchema": "uid"}),
        ] {
            assert_eq!(home(&lab).err().unwrap().len(), 1, "{lab}");
        }
    }

    #[test]
    fn a_username_that_is_a_path_has_no_home() {
        for name in ["", "..", "a/b", ".ssh"] {
            assert!(matches!(Home::default().of(name), Err(Error::Internal(_))), "{name}");
        }
    }
}

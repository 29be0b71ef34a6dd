/// Variables of a request that nothing may replace: exact names, and prefixes written with a `*` at the end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReservedEnv {
    patterns: Vec<String>,
}

impl ReservedEnv {
    /// Parses `patterns`; a `*` at the end of one makes it a prefix.
    pub fn new(patterns: &[String]) -> Self {
        Self { patterns: patterns.to_vec() }
    }

    /// True if one of the patterns matches `name`.
    pub fn contains(&self, name: &str) -> bool {
        self.patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
            Some(prefix) => name.starts_with(prefix),
            None => name == pattern,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::LabSection;
    use super::*;

    #[test]
    fn only_the_variables_that_the_hub_sets_are_reserved_by_default() {
        let reserved = ReservedEnv::new(&LabSection::default().reserved_env);
        for name in
            ["JUPYTERHUB_API_TOKEN", "JUPYTERHUB_API_URL", "JUPYTERHUB_SERVICE_PREFIX", "JPY_API_TOKEN"]
        {
            assert!(reserved.contains(name), "{name}");
        }
        for name in ["JUPYTERHUB_SINGLEUSER_APP", "JUPYTERHUB_USER_X", "PATH"] {
            assert!(!reserved.contains(name), "{name}");
        }
    }
}

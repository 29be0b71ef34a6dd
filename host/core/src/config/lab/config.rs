use std::collections::{BTreeMap, BTreeSet};

use super::user_files::HOME;
use super::{ENV_KEY_PREFIX, LabSection, LabService, REQUEST_KEY, ReservedEnv, SecretKey, TOKEN_KEY, files};
use crate::config::NamespaceReclaim;
use crate::config::administrators::AdministratorLifts;
use crate::names::{EnvName, Fields, LabelKey, LabelValue, Template, TemplateScope};
use crate::users::identity::{Identity, in_user_files};
use crate::values::field_error::FieldError;
use crate::values::path;

/// The validated section `lab`: its templates are parsed and its keys fit together.
#[derive(Clone, Debug)]
pub struct LabConfig {
    /// The section as it was written.
    pub section: LabSection,
    /// The name of this installation. It separates the labs of this service from those of another in the same cluster.
    pub instance: LabelValue,
    /// Whether labs have namespaces of their own, and what happens to those.
    pub namespaces: NamespaceReclaim,
    /// The URL of this service's API for labs, with the prefix; `None` if labs do not reach it.
    pub api_url: Option<String>,
    reserved: ReservedEnv,
    working_dir: Option<Template>,
    /// Absent if homes are where they are by default.
    home: Option<Template>,
    env: BTreeMap<EnvName, Template>,
    labels: BTreeMap<LabelKey, Template>,
    annotations: BTreeMap<LabelKey, Template>,
}

impl LabConfig {
    /// Validates the section. Reports every problem at once, with its key.
    pub fn parse(section: LabSection, instance: LabelValue) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let reserved = ReservedEnv::new(&section.reserved_env);
        let lab = Self {
            working_dir: section
                .working_dir
                .as_ref()
                .and_then(|text| template("lab.working_dir", text, &mut errors)),
            home: home(&section.user_files.home, &mut errors),
            env: templates("lab.env", &section.env, &mut errors),
            labels: templates("lab.labels", &section.labels, &mut errors),
            annotations: templates("lab.annotations", &section.annotations, &mut errors),
            reserved,
            instance,
            namespaces: NamespaceReclaim::default(),
            api_url: None,
            section,
        };
        lab.check_secrets(&mut errors);
        lab.check_values(&mut errors);
        if errors.is_empty() { Ok(lab) } else { Err(errors) }
    }

    /// The same configuration with another setting for namespaces.
    #[must_use]
    pub fn with_namespaces(mut self, namespaces: NamespaceReclaim) -> Self {
        self.namespaces = namespaces;
        self
    }

    /// The same configuration for labs that reach the service at this URL.
    #[must_use]
    pub fn with_api_url(mut self, api_url: Option<String>) -> Self {
        self.api_url = api_url;
        self
    }

    /// True if neither policies nor configuration may replace the variable `name` of a request.
    pub fn reserves(&self, name: &str) -> bool {
        self.reserved.contains(name)
    }

    /// The directory in which every lab starts, if the site sets one.
    pub fn working_dir(&self, fields: &Fields) -> Option<String> {
        self.working_dir.as_ref().map(|template| template.render(fields))
    }

    /// The user's home.
    pub fn home(&self, fields: &Fields, identity: &Identity) -> String {
        self.home.as_ref().map_or_else(|| identity.home(), |template| in_path(&template.render(fields)))
    }

    /// The environment variables that the site gives every lab.
    pub fn env(&self, fields: &Fields) -> BTreeMap<EnvName, String> {
        rendered(&self.env, fields)
    }

    /// The labels that the site puts on every object.
    pub fn labels(&self, fields: &Fields) -> BTreeMap<LabelKey, String> {
        rendered(&self.labels, fields)
    }

    /// The annotations that the site puts on every object.
    pub fn annotations(&self, fields: &Fields) -> BTreeMap<LabelKey, String> {
        rendered(&self.annotations, fields)
    }

    /// All Secret keys that a spawn needs from the service's own namespace.
    pub fn needed_secrets(&self) -> BTreeSet<SecretKey> {
        self.section.secrets.iter().map(super::SiteSecret::secret_key).collect()
    }

    fn check_secrets(&self, errors: &mut Vec<FieldError>) {
        let mut keys = BTreeSet::new();
        let secrets = &self.section.secrets;
        for (at, secret) in secrets.iter().enumerate().filter(|(_, secret)| !secret.pull_secret) {
            let field = format!("lab.secrets[{at}].key");
            if !path::is_key(&secret.key) {
                errors.push(FieldError::new(&field, format!("{:?} is not a key of a Secret", secret.key)));
            } else if secret.key == TOKEN_KEY {
                errors.push(FieldError::new(
                    &field,
                    "`token` is the key of the user's own token; rename the secret's key",
                ));
            } else if secret.key.starts_with(ENV_KEY_PREFIX) {
                errors.push(FieldError::new(
                    &field,
                    "`env.` begins the keys of environment variables; rename the secret's key",
                ));
            } else if secret.key == REQUEST_KEY {
                errors.push(FieldError::new(
                    &field,
                    "`wasmspawner.request` is the key of the request for the lab; rename the secret's key",
                ));
            } else if !keys.insert(&secret.key) {
                errors.push(FieldError::new(
                    &field,
                    format!("another secret has the key {:?} already", secret.key),
                ));
            }
        }
        if secrets.iter().filter(|secret| secret.pull_secret).count() > 1 {
            errors.push(FieldError::new("lab.secrets", "more than one is marked `pull_secret`; one can be"));
        }
    }

    fn check_values(&self, errors: &mut Vec<FieldError>) {
        let config = &self.section;
        if let Some(path) = config.secrets_path.as_deref().filter(|path| !path::is_absolute(path)) {
            errors.push(FieldError::new("lab.secrets_path", format!("{path:?} is not an absolute path")));
        }
        errors.extend(config.service.as_ref().and_then(LabService::check));
        let of_administrators = config.administrators.as_ref().and_then(AdministratorLifts::problem);
        errors.extend(
            of_administrators
                .map(|(key, problem)| FieldError::new(format!("lab.administrators.{key}"), problem)),
        );
        if config.port == 0 {
            errors.push(FieldError::new("lab.port", "must be 1 to 65535"));
        }
        for name in config.env.keys().filter(|name| self.reserves(name.as_str())) {
            let message = "is reserved for what the Hub sends (`lab.reserved_env`); remove it";
            errors.push(FieldError::new(format!("lab.env.{name}"), message));
        }
        for (at, pattern) in config.reserved_env.iter().enumerate() {
            let name = pattern.strip_suffix('*').unwrap_or(pattern);
            if EnvName::parse(name).is_err() {
                let message =
                    format!("{pattern:?} is neither a variable's name nor a prefix with `*` at its end");
                errors.push(FieldError::new(format!("lab.reserved_env[{at}]"), message));
            }
        }
        if let Some(probe) = &config.readiness_probe
            && [
                probe.period_seconds,
                probe.running_period_seconds,
                probe.timeout_seconds,
                probe.failure_threshold,
            ]
            .contains(&0)
        {
            errors.push(FieldError::new("lab.readiness_probe", "seconds and threshold must be at least 1"));
        }
        errors.extend(files::check(&config.files, config.secrets_path.as_deref()));
        for (key, lines) in [("passwd", &config.user_files.passwd), ("group", &config.user_files.group)] {
            if !lines.is_empty() && !lines.ends_with('\n') {
                errors.push(FieldError::new(format!("lab.user_files.{key}"), "must end with a line break"));
            }
        }
    }
}

/// Reads the template of homes.
fn home(text: &str, errors: &mut Vec<FieldError>) -> Option<Template> {
    const KEY: &str = "lab.user_files.home";
    if text == HOME {
        return None;
    }
    if !path::is_absolute(&text.replace(':', "")) {
        errors.push(FieldError::new(KEY, format!("{text:?} is not an absolute path")));
    }
    match Template::parse(KEY, text, TemplateScope::Rest) {
        Ok(template) => Some(template),
        Err(error) => {
            errors.push(FieldError::new(KEY, error.problem.to_string()));
            None
        }
    }
}

/// Replaces what would end the field or the line in `/etc/passwd`. Usernames may contain it.
fn in_path(home: &str) -> String {
    home.split('/').map(in_user_files).collect::<Vec<_>>().join("/")
}

fn template(key: &str, text: &str, errors: &mut Vec<FieldError>) -> Option<Template> {
    match Template::parse(key, text, TemplateScope::Lab) {
        Ok(template) => Some(template),
        Err(error) => {
            errors.push(FieldError::new(key, error.problem.to_string()));
            None
        }
    }
}

fn templates<K: Ord + Clone + AsRef<str>>(
    section: &str,
    texts: &BTreeMap<K, String>,
    errors: &mut Vec<FieldError>,
) -> BTreeMap<K, Template> {
    texts
        .iter()
        .filter_map(|(key, text)| {
            Some((key.clone(), template(&format!("{section}.{}", key.as_ref()), text, errors)?))
        })
        .collect()
}

fn rendered<K: Ord + Clone>(templates: &BTreeMap<K, Template>, fields: &Fields) -> BTreeMap<K, String> {
    templates.iter().map(|(key, template)| (key.clone(), template.render(fields))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::{NameTemplates, NamesConfig, ServerName, Username};

    fn parse(yaml: &str) -> Result<LabConfig, Vec<FieldError>> {
        LabConfig::parse(serde_saphyr::from_str(yaml).unwrap(), LabelValue::constant("test"))
    }

    #[test]
    fn the_defaults_are_valid() {
        assert!(parse("{}").is_ok());
    }

    #[test]
    fn all_errors_are_reported_at_once_with_their_keys() {
        let errors = parse(
            r"
port: 0
working_dir: '/home/{user}'
env: {A: '{', JUPYTERHUB_API_URL: x}
labels: {example.org/a: '{nope}'}
secrets_path: secrets
files: {settings.yaml: ''}
reserved_env: ['JUPYTERHUB_*', '*B', 'C D']
readiness_probe: {period_seconds: 0}
user_files: {passwd: 'root:x:0:0::/:/bin/sh', home: 'home/{home}'}
secrets:
  - {name: a, key: token}
  - {name: b, key: k}
  - {name: c, key: k}
  - {name: d, key: a/b}
  - {name: e, key: env.X}
  - {name: f, key: .dockerconfigjson, pull_secret: true}
  - {name: g, key: .dockerconfigjson, pull_secret: true}
",
        )
        .unwrap_err();
        let fields: Vec<_> = errors.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(
            fields,
            [
                "lab.working_dir",
                "lab.user_files.home",
                "lab.user_files.home",
                "lab.env.A",
                "lab.labels.example.org/a",
                "lab.secrets[0].key",
                "lab.secrets[2].key",
                "lab.secrets[3].key",
                "lab.secrets[4].key",
                "lab.secrets",
                "lab.secrets_path",
                "lab.port",
                "lab.env.JUPYTERHUB_API_URL",
                "lab.reserved_env[1]",
                "lab.reserved_env[2]",
                "lab.readiness_probe",
                "lab.files.settings.yaml",
                "lab.user_files.passwd"
            ]
        );
    }

    #[test]
    fn homes_are_where_the_site_says() {
        let identity = Identity::with_numbers(Username::parse("Eve:x").unwrap(), 1, 1);
        let templates = NameTemplates::parse(&NamesConfig::default()).unwrap();
        let names = templates.resolve(&identity.username, &ServerName::parse("").unwrap(), None).unwrap();
        for (template, expected) in [
            (HOME, "/home/Eve_x"),
            ("/u/{unescaped_username}/rsp", "/u/Eve_x/rsp"),
            ("/home/{unescaped_username:.1}/{unescaped_username}", "/home/E/Eve_x"),
        ] {
            let lab = parse(&format!("user_files: {{home: '{template}'}}")).unwrap();
            assert_eq!(lab.home(&names.fields, &identity), expected, "{template}");
        }
    }

    #[test]
    fn an_unknown_key_is_an_error() {
        let error =
            serde_saphyr::from_str::<LabSection>("{imagePullPolicy: Always}").unwrap_err().to_string();
        assert!(error.contains("imagePullPolicy"), "{error}");
    }
}

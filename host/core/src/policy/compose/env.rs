//! Builds the environment of a lab. Later layers win: the name of the lab, request, service, policies, configuration
//! (SQR-066, "Environment").

use std::collections::BTreeMap;

use super::merge::Merged;
use super::references::{References, TooLong};
use super::service_url::{SERVICE_URL, with_port};
use super::{Provenance, Source, SpawnInputs, SpawnRejected};
use crate::config::lab::{LabConfig, TOKEN_KEY};
use crate::names::EnvName;
use crate::names::lab::LabKey;
use crate::policy::{EnvValue, FieldError, KeyRef, Resources, Value, is_credential};
use crate::users::quota::Quantity;
use crate::values::credential::REDACTED;
use crate::values::secret::SecretString;

/// Largest environment in bytes. A `ConfigMap` holds 1 MiB, and part of that is left for names and metadata.
const MAX_ENV_BYTES: usize = 960 * 1024;

/// The value of a variable. The variant also says where the value is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabValue {
    /// The value is in the `ConfigMap`.
    Plain(String),
    /// The value is in the lab's Secret.
    Credential(SecretString),
    /// The value is in another Secret of the namespace.
    SecretKey(KeyRef),
    /// The value is a field of the pod.
    Field(String),
}

/// The environment of a lab.
pub type LabEnv = BTreeMap<EnvName, LabValue>;

pub(super) fn lab_env(
    inputs: &SpawnInputs<'_>,
    merged: &Merged,
    port: u16,
    provenance: &mut Provenance,
) -> Result<LabEnv, SpawnRejected> {
    let policies = policies(merged, provenance);
    let mut layers = Layers { values: BTreeMap::new(), of_operator: BTreeMap::new(), provenance };
    // The Hub normally sets these. They are set here for labs that were started without a Hub, and for kernels, which do
    // not get the variables of their lab. Only programs that call our API need them.
    for (name, value) in name_of_lab(inputs).into_iter().filter(|_| inputs.lab.api_url.is_some()) {
        layers.put(EnvName::constant(name), EnvValue::Literal(value), &Source::Service);
    }
    for (name, value) in request(&inputs.request.env)? {
        layers.put(name, EnvValue::Literal(value), &Source::Request);
    }
    for (name, value) in service(merged, inputs.lab) {
        layers.put(EnvName::constant(name), value, &Source::Service);
    }
    if port != inputs.lab.section.port
        && let Some(url) = inputs.request.env.get(SERVICE_URL).and_then(|url| with_port(url, port))
    {
        layers.put(EnvName::constant(SERVICE_URL), EnvValue::Literal(url), &Source::Service);
    }
    for (name, (value, policy)) in policies {
        layers.put(name, value, &policy);
    }
    for (name, value) in inputs.lab.env(&inputs.names.fields) {
        layers.put(name, EnvValue::Literal(value), &Source::Configuration);
    }
    let Layers { mut values, of_operator, .. } = layers;
    expand_references(inputs, &mut values, &of_operator)?;
    let bytes: usize = values.iter().map(|(name, value)| name.as_str().len() + length(value)).sum();
    if bytes > MAX_ENV_BYTES {
        let message = format!("the lab's environment is {bytes} bytes large; at most {MAX_ENV_BYTES} fit");
        return Err(SpawnRejected::request(vec![FieldError::new("env", message)]));
    }
    let hidden = |name: &EnvName, text: &str| is_hidden(inputs, name, text);
    let stored = |name: &EnvName, value: EnvValue| match value {
        EnvValue::Literal(text) if hidden(name, &text) => LabValue::Credential(SecretString::new(text)),
        EnvValue::Literal(text) => LabValue::Plain(text),
        EnvValue::SecretRef(key) => LabValue::SecretKey(key),
        EnvValue::FieldRef(field) => LabValue::Field(field),
    };
    Ok(values.into_iter().map(|(name, value)| (name.clone(), stored(&name, value))).collect())
}

/// True for a value that is stored as a credential.
fn is_hidden(inputs: &SpawnInputs<'_>, name: &EnvName, text: &str) -> bool {
    let config = &inputs.lab.section;
    let of_request =
        config.request_env_is_secret && inputs.request.env.get(name).is_some_and(|sent| sent == text);
    of_request || is_credential(name.as_str(), text, config)
}

/// Expands `$(NAME)` in the variables of policies and of the configuration.
fn expand_references(
    inputs: &SpawnInputs<'_>,
    values: &mut BTreeMap<EnvName, EnvValue>,
    of_operator: &BTreeMap<EnvName, Author>,
) -> Result<(), SpawnRejected> {
    let is_credential = |name: &EnvName, text: &str| is_hidden(inputs, name, text);
    let literal = |value: &'_ EnvValue| match value {
        EnvValue::Literal(text) => Some(text.clone()),
        EnvValue::SecretRef(_) | EnvValue::FieldRef(_) => None,
    };
    let texts: BTreeMap<EnvName, String> =
        values.iter().filter_map(|(name, value)| Some((name.clone(), literal(value)?))).collect();
    // The name of the lab is no secret, whoever sets it.
    let named = name_of_lab(inputs).map(|(name, value)| (EnvName::constant(name), value));
    let of_others = texts.iter().filter(|(name, _)| !of_operator.contains_key(*name));
    let of_others = of_others.filter(|(name, text)| !is_credential(name, text));
    let mut plain: BTreeMap<&EnvName, &str> = of_others.map(|(name, text)| (name, text.as_str())).collect();
    for (name, value) in &named {
        let same = values.get(name).is_none_or(|set| *set == EnvValue::Literal(value.clone()));
        if same {
            plain.insert(name, value);
        }
    }
    // Options are in no template of the configuration.
    let (of_names, of_options) = (names_of_user(inputs), texts_of_user(inputs));
    let references = References {
        expanded: texts
            .iter()
            .filter(|(name, _)| of_operator.contains_key(*name) && !plain.contains_key(name))
            .map(|(name, text)| (name, text.as_str()))
            .collect(),
        plain,
        is_credential: &is_credential,
        of_user: &|name| match of_operator.get(name) {
            Some(Author::Configuration) => &of_names,
            Some(Author::Policy) | None => &of_options,
        },
        max_bytes: MAX_ENV_BYTES,
    };
    let expanded = references.values().map_err(|TooLong| {
        let message =
            format!("a variable becomes longer than {MAX_ENV_BYTES} bytes by its references to others");
        SpawnRejected::operator("env", message)
    })?;
    values.extend(expanded.into_iter().map(|(name, text)| (name, EnvValue::Literal(text))));
    Ok(())
}

/// The texts that the user could choose and that could be a part of a reference.
fn texts_of_user<'a>(inputs: &'a SpawnInputs<'_>) -> Vec<&'a str> {
    let options = inputs.request.options.iter().flat_map(|(name, value)| {
        let text = match value {
            Value::Text(text) => Some(text.as_str()),
            Value::Boolean(_) | Value::Integer(_) | Value::Number(_) => None,
        };
        [Some(name.as_str()), text].into_iter().flatten()
    });
    options.filter(|text| is_part_of_reference(text)).chain(names_of_user(inputs)).collect()
}

/// The same of the names of the user and their server, without options.
fn names_of_user<'a>(inputs: &'a SpawnInputs<'_>) -> Vec<&'a str> {
    let identity = &inputs.request.identity;
    let named = [inputs.request.key.server.as_str(), identity.username.as_str()].into_iter();
    let told = identity.email.iter().chain(&identity.display_name).map(String::as_str);
    let groups = identity.groups.iter().map(|group| group.name.as_str());
    named.chain(told).chain(groups).filter(|text| is_part_of_reference(text)).collect()
}

fn is_part_of_reference(text: &str) -> bool {
    text.contains(['$', '(', ')'])
}

/// Returns the environment as it may be shown: credentials are replaced by [`REDACTED`].
pub(super) fn redacted(env: &LabEnv) -> BTreeMap<String, String> {
    env.iter()
        .map(|(name, value)| {
            let shown = match value {
                LabValue::Plain(text) => text.clone(),
                LabValue::Credential(_) | LabValue::SecretKey(_) => REDACTED.to_owned(),
                LabValue::Field(field) => format!("<{field}>"),
            };
            (name.to_string(), shown)
        })
        .collect()
}

/// Who has written a variable in which references are expanded.
#[derive(Clone, Copy)]
enum Author {
    Policy,
    Configuration,
}

struct Layers<'a> {
    values: BTreeMap<EnvName, EnvValue>,
    /// The variables whose values a policy or the configuration has set.
    of_operator: BTreeMap<EnvName, Author>,
    provenance: &'a mut Provenance,
}

impl Layers<'_> {
    fn put(&mut self, name: EnvName, value: EnvValue, source: &Source) {
        let field = format!("env.{name}");
        match source {
            Source::Policy(_) => self.of_operator.insert(name.clone(), Author::Policy),
            Source::Configuration => self.of_operator.insert(name.clone(), Author::Configuration),
            _ => self.of_operator.remove(&name),
        };
        if self.values.get(&name) == Some(&value) {
            return;
        }
        match self.values.insert(name, value) {
            Some(_) => self.provenance.replaced(field, source),
            None => self.provenance.set(field, source),
        }
    }
}

/// Returns the policies' variables, each with the policy that set it. Removes them from the provenance;
/// `Layers::put` records them again.
fn policies(merged: &Merged, provenance: &mut Provenance) -> BTreeMap<EnvName, (EnvValue, Source)> {
    merged
        .env
        .iter()
        .filter_map(|(name, value)| {
            let source = provenance.sources.remove(&format!("env.{name}"))?;
            // The name was checked before the answers were merged.
            Some((EnvName::parse(name.as_str()).ok()?, (value.clone(), source)))
        })
        .collect()
}

/// Returns the request's variables. Refuses a value with a NUL, which the API server would accept and at which the
/// kubelet would fail.
fn request(env: &BTreeMap<EnvName, String>) -> Result<Vec<(EnvName, String)>, SpawnRejected> {
    let nul = |(name, _): (&EnvName, &String)| {
        FieldError::new(format!("env.{name}"), "contains a NUL, which no environment can hold")
    };
    let errors: Vec<_> = env.iter().filter(|(_, value)| value.contains('\0')).map(nul).collect();
    if !errors.is_empty() {
        return Err(SpawnRejected::request(errors));
    }
    Ok(env.iter().map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// Returns the variables that name the lab, for the programs that the lab starts.
fn name_of_lab(inputs: &SpawnInputs<'_>) -> [(&'static str, String); 2] {
    let LabKey { user, server } = &inputs.request.key;
    [("JUPYTERHUB_USER", user.to_string()), ("JUPYTERHUB_SERVER_NAME", server.to_string())]
}

/// Returns the variables that the service sets for every lab. Resources have the format of JupyterHub's own spawners:
/// memory in bytes, and CPUs as Python writes a float, such as `2.0`.
fn service(merged: &Merged, lab: &LabConfig) -> Vec<(&'static str, EnvValue)> {
    let Resources { cpu_limit_millis, cpu_request_millis, memory_limit_bytes, memory_request_bytes, .. } =
        merged.resources;
    let cpus = |millis: Option<u64>| {
        let number = Quantity::millis(millis?).decimal();
        Some(if number.contains('.') { number } else { format!("{number}.0") })
    };
    let bytes = |bytes: Option<u64>| bytes.map(|bytes| bytes.to_string());
    let (digest, description) =
        merged.image.as_ref().map_or((None, None), |image| (image.digest.clone(), image.description.clone()));
    // The lab uses the token and the URL to start kernels and Dask pools.
    let token_file = lab.section.secrets_path.as_ref().filter(|_| lab.api_url.is_some());
    let literals = [
        ("CPU_GUARANTEE", cpus(cpu_request_millis)),
        ("CPU_LIMIT", cpus(cpu_limit_millis)),
        ("IMAGE_DESCRIPTION", description),
        ("IMAGE_DIGEST", digest),
        ("MEM_GUARANTEE", bytes(memory_request_bytes)),
        ("MEM_LIMIT", bytes(memory_limit_bytes)),
        (
            "WASMSPAWNER_TOKEN_FILE",
            token_file.map(|path| format!("{}/{TOKEN_KEY}", path.trim_end_matches('/'))),
        ),
        ("WASMSPAWNER_URL", lab.api_url.clone()),
    ];
    let known = literals.into_iter().filter_map(|(name, value)| Some((name, EnvValue::Literal(value?))));
    // For servers that have to bind to or announce their own address.
    known.chain([("POD_IP", EnvValue::FieldRef("status.podIP".to_owned()))]).collect()
}

fn length(value: &EnvValue) -> usize {
    match value {
        EnvValue::Literal(text) | EnvValue::FieldRef(text) => text.len(),
        EnvValue::SecretRef(key) => key.name.len() + key.key.len(),
    }
}

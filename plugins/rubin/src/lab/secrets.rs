use wasmspawner_sdk::Section;
use wasmspawner_sdk::pod::{EnvVar, Mount, ObjectSource, Volume, VolumeSource};

use super::distinct::Distinct;

/// The name of the volume with the lab's Secret.
pub(super) const VOLUME: &str = "secrets";

/// The key of the user's own token in the lab's Secret.
const TOKEN: &str = "token";

/// The secrets of the site that labs receive as variables or as single files. The service copies them into the lab's
/// Secret, under their own keys.
pub(crate) struct Secrets {
    /// The name of the lab's Secret; a template.
    object: String,
    secrets: Vec<Secret>,
}

struct Secret {
    key: String,
    env: Option<String>,
    path: Option<String>,
}

impl Default for Secrets {
    fn default() -> Self {
        Self { object: "nb-{user_server}".into(), secrets: Vec::new() }
    }
}

impl Secrets {
    pub(super) fn read(lab: &mut Section<'_>) -> Self {
        let mut keys = Distinct::default();
        let secrets = lab.list("secrets", |secret| {
            let (name, key): (String, String) = (secret.required("secretName"), secret.required("secretKey"));
            if key == TOKEN {
                secret.problem("secretKey", "is the key of the user's own token; choose another");
            }
            keys.add(secret, "secretKey", &key);
            let read = Secret { key, env: secret.optional("env"), path: secret.optional("path") };
            if read.env.is_none() && read.path.is_none() {
                let entry = format!("{{name: {name}, key: {}}}", read.key);
                let message = format!(
                    "has no effect; list it in `lab.secrets` of the service's configuration, as {entry}: the lab finds \
                     it in the folder `lab.secrets_path`"
                );
                secret.warning("", &message);
            }
            read
        });
        Self { object: lab.template("labSecretName").unwrap_or_else(|| Self::default().object), secrets }
    }

    /// The user's token, and the secrets that are variables.
    pub(crate) fn env(&self) -> Vec<EnvVar> {
        let secrets =
            self.secrets.iter().filter_map(|secret| Some((secret.env.as_deref()?, secret.key.as_str())));
        let variables = secrets.chain([("ACCESS_TOKEN", TOKEN)]);
        variables.map(|(name, key)| EnvVar::secret(name, &self.object, key)).collect()
    }

    /// The lab's Secret, if a secret is mounted as a file.
    pub(crate) fn volume(&self) -> Option<Volume> {
        self.secrets.iter().any(|secret| secret.path.is_some()).then(|| {
            let source =
                ObjectSource { name: self.object.clone(), optional: false, items: Vec::new(), mode: None };
            Volume::new(VOLUME, VolumeSource::Secret(source))
        })
    }

    pub(crate) fn mounts(&self) -> impl Iterator<Item = Mount> {
        let mount = |secret: &Secret| {
            Some(Mount::new(VOLUME, secret.path.as_ref()?).sub_path(&secret.key).read_only())
        };
        self.secrets.iter().filter_map(mount)
    }
}

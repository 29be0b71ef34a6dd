use std::collections::BTreeMap;

use super::{SpawnInputs, SpawnRejected};
use crate::values::secret::SecretBytes;

/// Splits the site's secrets into those of the lab's Secret, by key, and the registry credential, which the lab must
/// not be able to read.
pub(super) fn site_secrets(
    inputs: &SpawnInputs<'_>,
) -> Result<(BTreeMap<String, SecretBytes>, Option<SecretBytes>), SpawnRejected> {
    let mut secrets = BTreeMap::new();
    let mut pull_secret = None;
    for (at, wanted) in inputs.lab.section.secrets.iter().enumerate() {
        let Some(value) = inputs.site_secrets.get(&wanted.secret_key()).cloned() else {
            let message =
                format!("the Secret `{}` has no key `{}`, or does not exist", wanted.name, wanted.key);
            return Err(SpawnRejected::operator(format!("lab.secrets[{at}]"), message));
        };
        if wanted.pull_secret {
            pull_secret = Some(value);
        } else {
            secrets.insert(wanted.key.clone(), value);
        }
    }
    Ok((secrets, pull_secret))
}

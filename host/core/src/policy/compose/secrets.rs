use std::collections::BTreeMap;

use super::{SpawnInputs, SpawnRejected};
use crate::secret::SecretBytes;

/// The site's secrets by their key in the lab's Secret, and the registry credential apart from them: the lab's user
/// has no business with it.
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

use wasmspawner_sdk::quota::{Quota, Usage};
use wasmspawner_sdk::{Error, User, hooks};

use crate::RubinPolicy;

impl hooks::Quota for RubinPolicy {
    /// Returns the limits of the identity provider, and one lab at a time, as everywhere on the Rubin Science Platform.
    fn limits(&self, user: &User, _: &Usage) -> Result<Quota, Error> {
        let quota = user.quota;
        Ok(Quota {
            cpu_millis: quota.and_then(|quota| quota.cpu_millis),
            memory_bytes: quota.and_then(|quota| quota.memory_bytes),
            labs: Some(1),
            ..Quota::default()
        })
    }
}

//! The users who have had a lab before. Init containers that prepare a new user are not run for them again.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use wasmspawner_core::names::{LabelValue, Username};

use wasmspawner_kubernetes::k8s::{ConfigMapRecords, KubernetesError};

/// The users who have had a lab, stored in the cluster and cached here.
#[derive(Clone)]
pub struct Provisioned {
    records: ConfigMapRecords,
    known: Arc<RwLock<HashSet<String>>>,
}

impl Provisioned {
    /// The users stored in `records`.
    pub fn new(records: ConfigMapRecords) -> Self {
        Self { records, known: Arc::default() }
    }

    /// Reads the users from the cluster.
    pub(crate) async fn load(&self) -> Result<(), KubernetesError> {
        let recorded = self.records.all().await?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).extend(recorded.into_keys());
        Ok(())
    }

    /// True if a lab of this user has started successfully before.
    pub(crate) fn contains(&self, user: &Username) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains(&record_key(user))
    }

    /// Stores that a lab of this user has started successfully.
    pub(crate) async fn insert(&self, user: &Username, now: Timestamp) -> Result<(), KubernetesError> {
        if self.contains(user) {
            return Ok(());
        }
        self.records.set(&record_key(user), &now.to_string()).await?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(record_key(user));
        Ok(())
    }
}

/// The key under which a user is stored.
fn record_key(user: &Username) -> String {
    LabelValue::for_name(user.as_str()).into()
}

//! Who has had a lab before, so that their init containers need not run again.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use wasmspawner_core::names::{LabelValue, Username};

use crate::k8s::{KubernetesError, Records};

/// The users who have had a lab, recorded in the cluster and remembered here.
#[derive(Clone)]
pub struct Provisioned {
    records: Records,
    known: Arc<RwLock<HashSet<String>>>,
}

impl Provisioned {
    /// The record kept in `records`.
    pub fn new(records: Records) -> Self {
        Self { records, known: Arc::default() }
    }

    /// Reads what was recorded before.
    pub(super) async fn load(&self) -> Result<(), KubernetesError> {
        let recorded = self.records.all().await?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).extend(recorded.into_keys());
        Ok(())
    }

    /// Whether a lab of this user has started successfully before.
    pub(super) fn contains(&self, user: &Username) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains(&record_key(user))
    }

    /// Records that a lab of this user has started successfully.
    pub(super) async fn insert(&self, user: &Username, now: Timestamp) -> Result<(), KubernetesError> {
        if self.contains(user) {
            return Ok(());
        }
        self.records.set(&record_key(user), &now.to_string()).await?;
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(record_key(user));
        Ok(())
    }
}

/// Under which key a user is recorded.
fn record_key(user: &Username) -> String {
    LabelValue::for_name(user.as_str()).into()
}

//! Who has had a lab before, so that their init containers need not run again.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use jiff::Timestamp;
use wasmspawner_core::names::LabNames;

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

    /// Whether a lab of this user has started successfully before.
    pub(super) async fn contains(&self, names: &LabNames) -> Result<bool, KubernetesError> {
        let user = names.user_label.as_str();
        if self.is_known(user) {
            return Ok(true);
        }
        let recorded = self.records.get(user).await?.is_some();
        if recorded {
            self.learn(user);
        }
        Ok(recorded)
    }

    /// Records that a lab of this user has started successfully.
    pub(super) async fn insert(&self, names: &LabNames, now: Timestamp) -> Result<(), KubernetesError> {
        let user = names.user_label.as_str();
        if self.is_known(user) {
            return Ok(());
        }
        self.records.set(user, &now.to_string()).await?;
        self.learn(user);
        Ok(())
    }

    fn is_known(&self, user: &str) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).contains(user)
    }

    fn learn(&self, user: &str) {
        self.known.write().unwrap_or_else(PoisonError::into_inner).insert(user.to_owned());
    }
}

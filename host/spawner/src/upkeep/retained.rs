//! The objects that stay on purpose when labs end.

use std::collections::HashSet;

use wasmspawner_core::record::retained::{
    RetainedKind, RetainedObject, RetainedReason, retained_claims, retained_targets,
};

use crate::errors::SpawnError;
use crate::labs::Labs;
use crate::upkeep::leftovers::Leftovers;

impl Leftovers {
    /// All objects that stay on purpose when labs end, sorted.
    pub fn retained(&self) -> Result<Vec<RetainedObject>, SpawnError> {
        self.0.require_ready()?;
        let context = self.0.context();
        let mut kept = namespaces(&self.0);
        if let Some(volumes) = &context.volumes {
            let records = volumes.all();
            kept.extend(retained_claims(records.iter(), |key| {
                let key = key.clone().into();
                self.0.lab(&key).is_some() || self.0.unreadable().record_of(&key).is_some()
            }));
        }
        if let Some(environments) = &context.environments {
            kept.extend(retained_targets(environments.overview()));
        }
        kept.sort();
        Ok(kept)
    }
}

/// The namespaces that the service has made for labs and never deletes. Namespaces that others have made do not have
/// its labels.
fn namespaces(labs: &Labs) -> Vec<RetainedObject> {
    let used: HashSet<String> = {
        let registry = labs.registry();
        let views = registry.iter().map(|(_, handle)| handle.view.borrow().clone());
        // The place of a lab remains known for a while after the lab has ended.
        let places = views.filter_map(|view| view.place.filter(|_| view.snapshot.is_some()));
        places.map(|place| place.namespace.into()).collect()
    };
    let made = labs.context().own_cluster().store.namespaces().into_iter();
    let stay = made.filter(|(_, state)| state.spawn.is_none() && state.target.is_none() && !state.deleting);
    stay.map(|(name, _)| RetainedObject {
        kind: RetainedKind::Namespace,
        cluster: None,
        namespace: None,
        in_use: used.contains(&name) || labs.count_unreadable() > 0,
        name,
        owners: Vec::new(),
        reason: RetainedReason::NamespacesStay,
    })
    .collect()
}

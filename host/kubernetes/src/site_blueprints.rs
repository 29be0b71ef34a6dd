//! The site's blueprints: those of its configuration, and those that are objects in the cluster.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use serde_json::{Map, Value};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use wasmspawner_core::config::Config;
use wasmspawner_core::custom_resource::blueprint::{BlueprintObject, ExtendedLibrary};

use crate::k8s::{Connection, CustomChange, CustomResources};

/// The longest time that the start of the service waits for the first list.
const MAX_SYNC: Duration = Duration::from_secs(10);

/// The site's blueprints. Clones share them.
#[derive(Clone)]
pub struct SiteBlueprints {
    /// `None` if the site has no blueprints in the cluster.
    resources: Option<CustomResources<Map<String, Value>, ()>>,
    objects: watch::Sender<Arc<Objects>>,
    listed: watch::Sender<bool>,
    last: Arc<Mutex<Option<Last>>>,
}

/// The objects by their names.
type Objects = BTreeMap<String, BlueprintObject>;

/// The last result of [`SiteBlueprints::now`], and the inputs that it was made from.
struct Last {
    config: Arc<Config>,
    objects: Arc<Objects>,
    blueprints: Arc<ExtendedLibrary>,
}

/// The custom resource is not installed in the cluster.
#[derive(Debug, thiserror::Error)]
#[error(
    "`blueprints.custom_resources` is set, and the cluster does not know the custom resource blueprints.wasmspawner.io; install it with `wasmspawner crds | kubectl apply -f -`, or apply deploy/crds.yaml"
)]
pub struct NoBlueprintResource;

impl SiteBlueprints {
    /// The blueprints of the configuration alone.
    pub fn configured() -> Self {
        Self {
            resources: None,
            objects: watch::Sender::default(),
            listed: watch::Sender::new(true),
            last: Arc::default(),
        }
    }

    /// The blueprints of the configuration, and the objects in `namespace`, which is the service's own.
    pub fn with_objects(connection: &Connection, namespace: &str, request_timeout: Duration) -> Self {
        Self {
            resources: Some(CustomResources::new(connection, namespace, request_timeout)),
            listed: watch::Sender::new(false),
            ..Self::configured()
        }
    }

    /// Fails when the custom resource is needed and not installed.
    pub async fn check_installed(&self) -> Result<(), NoBlueprintResource> {
        match &self.resources {
            Some(resources) if !resources.is_installed().await => Err(NoBlueprintResource),
            _ => Ok(()),
        }
    }

    /// Returns all blueprints, as they are now with this configuration.
    pub fn now(&self, config: &Arc<Config>) -> Arc<ExtendedLibrary> {
        let objects = Arc::clone(&self.objects.borrow());
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = &*last
            && Arc::ptr_eq(&last.config, config)
            && Arc::ptr_eq(&last.objects, &objects)
        {
            return Arc::clone(&last.blueprints);
        }
        let said = objects.iter().map(|(name, object)| (name.as_str(), &object.spec));
        let blueprints = Arc::new(ExtendedLibrary::new(&config.blueprints, said));
        let known = last.as_ref().map(|last| &last.blueprints.unusable);
        for (name, unusable) in &blueprints.unusable {
            if known.and_then(|known| known.get(name)) != Some(unusable) {
                tracing::warn!(
                    blueprint = name,
                    problem = unusable.problem,
                    "a blueprint in the cluster cannot be used"
                );
            }
        }
        *last = Some(Last { config: Arc::clone(config), objects, blueprints: Arc::clone(&blueprints) });
        blueprints
    }

    /// Waits until the objects have been listed once, but not for long: labs without blueprint objects must not wait
    /// for a permission that is missing.
    pub async fn first_sync(&self) {
        let mut listed = self.listed.subscribe();
        // The sender is a part of this value, so the waiting itself cannot fail.
        if tokio::time::timeout(MAX_SYNC, listed.wait_for(|listed| *listed)).await.is_err() {
            tracing::error!(
                "the blueprints in the cluster cannot be listed, and nobody is offered any; apply deploy/permissions/blueprints.yaml, or \
                 remove `blueprints.custom_resources` from the configuration"
            );
        }
    }

    /// Follows the objects until `stop`. Objects that cannot be used are logged at once.
    pub async fn run(&self, config: watch::Receiver<Arc<Config>>, stop: &CancellationToken) {
        let Some(resources) = &self.resources else { return };
        let mut changes = std::pin::pin!(resources.follow());
        while let Some(change) = stop.run_until_cancelled(changes.next()).await.flatten() {
            let mut objects = Objects::clone(&self.objects.borrow());
            match change {
                CustomChange::All(all) => {
                    objects = all.into_iter().map(|object| (object.name().to_owned(), object)).collect();
                }
                CustomChange::Changed(object) => {
                    objects.insert(object.name().to_owned(), *object);
                }
                CustomChange::Gone(name, _) => {
                    objects.remove(&name);
                }
            }
            self.objects.send_replace(Arc::new(objects));
            self.now(&Arc::clone(&config.borrow()));
            self.listed.send_replace(true);
        }
    }
}

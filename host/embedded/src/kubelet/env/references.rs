//! The `ConfigMap`s and Secrets a pod needs, and what was found of them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{ConfigMap, Container, PodSpec, Secret, Volume};

/// Names of objects that must be read, each once.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Needs {
    pub(crate) config_maps: BTreeSet<String>,
    pub(crate) secrets: BTreeSet<String>,
}

impl Needs {
    /// What a container's environment refers to.
    pub(crate) fn of_container(container: &Container) -> Self {
        let mut needs = Self::default();
        for source in container.env_from.iter().flatten() {
            if let Some(map) = &source.config_map_ref {
                needs.config_maps.insert(map.name.clone());
            }
            if let Some(secret) = &source.secret_ref {
                needs.secrets.insert(secret.name.clone());
            }
        }
        for source in container.env.iter().flatten().filter_map(|var| var.value_from.as_ref()) {
            if let Some(key) = &source.config_map_key_ref {
                needs.config_maps.insert(key.name.clone());
            }
            if let Some(key) = &source.secret_key_ref {
                needs.secrets.insert(key.name.clone());
            }
        }
        needs
    }

    /// What the pod's volumes refer to.
    pub(crate) fn of_volumes(spec: &PodSpec) -> Self {
        let mut needs = Self::default();
        for volume in spec.volumes.iter().flatten() {
            needs.add_volume(volume);
        }
        needs
    }

    fn add_volume(&mut self, volume: &Volume) {
        if let Some(map) = &volume.config_map {
            self.config_maps.insert(map.name.clone());
        }
        if let Some(name) = volume.secret.as_ref().and_then(|secret| secret.secret_name.clone()) {
            self.secrets.insert(name);
        }
        for source in volume.projected.iter().filter_map(|p| p.sources.as_ref()).flatten() {
            if let Some(map) = &source.config_map {
                self.config_maps.insert(map.name.clone());
            }
            if let Some(secret) = &source.secret {
                self.secrets.insert(secret.name.clone());
            }
        }
    }
}

/// The objects that exist among the needed ones.
#[derive(Debug, Default, Clone)]
pub(crate) struct References {
    pub(crate) config_maps: BTreeMap<String, ConfigMap>,
    pub(crate) secrets: BTreeMap<String, Secret>,
}

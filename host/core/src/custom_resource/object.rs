use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};

/// A custom resource: its metadata, its spec (the desired state), and its status.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Object<Spec, Status> {
    /// The metadata of the object.
    pub metadata: ObjectMeta,
    /// The desired state.
    pub spec: Spec,
    /// The present state, as the service last wrote it.
    #[serde(default)]
    pub status: Status,
}

/// The kind of a custom resource.
pub trait Kind {
    /// The kind, as it is written in objects.
    const KIND: &'static str;
    /// The kind's name in URLs and permissions.
    const PLURAL: &'static str;
    /// False for a cluster-scoped kind, whose objects are in no namespace.
    const NAMESPACED: bool = true;
}

impl<Spec, Status> Object<Spec, Status> {
    /// The object's name.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }

    /// The object's uid, which differs from that of an earlier object of the same name.
    pub fn uid(&self) -> &str {
        self.metadata.uid.as_deref().unwrap_or_default()
    }

    /// Returns true while the object is being deleted.
    pub fn is_deleting(&self) -> bool {
        self.metadata.deletion_timestamp.is_some()
    }

    /// Returns true if the object is gone for good: it is being deleted and has no finalizer.
    pub fn is_gone(&self) -> bool {
        self.is_deleting() && self.metadata.finalizers.iter().flatten().next().is_none()
    }

    /// Returns the time at which the object was created.
    pub fn created_at(&self) -> Option<Timestamp> {
        self.metadata.creation_timestamp.as_ref().map(|time| time.0)
    }

    /// Returns the value of an annotation.
    pub fn annotation(&self, name: &str) -> Option<&str> {
        self.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }

    /// Sets an annotation.
    pub fn annotate(&mut self, name: &str, value: &str) {
        self.metadata.annotations.get_or_insert_default().insert(name.to_owned(), value.to_owned());
    }

    /// Removes an annotation.
    pub fn remove_annotation(&mut self, name: &str) {
        if let Some(annotations) = &mut self.metadata.annotations {
            annotations.remove(name);
        }
    }

    /// Returns true if the object has this label.
    pub fn has_label(&self, name: &str) -> bool {
        self.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(name))
    }

    /// Returns true if the object has this finalizer.
    pub fn has_finalizer(&self, name: &str) -> bool {
        self.metadata.finalizers.as_ref().is_some_and(|all| all.iter().any(|finalizer| finalizer == name))
    }

    /// Adds a finalizer, unless the object has it already.
    pub fn add_finalizer(&mut self, name: &str) {
        if !self.has_finalizer(name) {
            self.metadata.finalizers.get_or_insert_default().push(name.to_owned());
        }
    }

    /// Removes a finalizer.
    pub fn remove_finalizer(&mut self, name: &str) {
        if let Some(finalizers) = &mut self.metadata.finalizers {
            finalizers.retain(|finalizer| finalizer != name);
        }
    }
}

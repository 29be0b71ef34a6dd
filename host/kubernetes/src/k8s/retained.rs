//! The retained namespaces that are the service's. Anybody who may create namespaces could make one of the right name
//! first, and would receive everything that is put into it: tokens of users and secrets of the site.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject};
use tokio::sync::{Mutex, OnceCell};
use uuid::Uuid;
use wasmspawner_core::config::NamespacePattern;
use wasmspawner_core::names::labels::MADE_ANNOTATION;

use super::retry::{RetryPolicy, retrying};
use super::{ConfigMapRecords, KubernetesError};
use wasmspawner_tasks::per_key::PerKey;

/// The retained namespaces that the service has made, by their uids. Clones share them.
#[derive(Clone)]
pub struct RetainedNamespaces(Arc<Inner>);

struct Inner {
    records: ConfigMapRecords,
    /// The content of the records.
    known: OnceCell<Mutex<BTreeMap<String, Made>>>,
    /// Lets one spawn at a time ask for a namespace.
    turns: PerKey<String>,
    named: Vec<NamespacePattern>,
}

/// The progress of making a namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Made {
    /// The namespace is being made, with this value of the annotation.
    Begun(String),
    /// The namespace was made and has this uid.
    Done(String),
}

/// The turn of one spawn to make or use a namespace. It ends when this value is dropped.
pub(super) struct Turn<'a> {
    namespaces: &'a Inner,
    name: String,
    pub(super) made: Made,
    _permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl RetainedNamespaces {
    /// Creates the set of the namespaces in `records`, in addition to those that the operator names (`named`).
    pub fn new(records: ConfigMapRecords, named: Vec<NamespacePattern>) -> Self {
        Self(Arc::new(Inner { records, known: OnceCell::new(), turns: PerKey::one(), named }))
    }

    /// True if the operator names this namespace for labs. It does not matter who has made it.
    pub(super) fn is_named_by_operator(&self, name: &str) -> bool {
        self.0.named.iter().any(|pattern| pattern.matches(name))
    }

    /// Records a namespace that contains labs.
    pub(super) async fn remember(
        &self,
        name: &str,
        namespace: &DynamicObject,
    ) -> Result<(), KubernetesError> {
        self.0.done(name, namespace).await
    }

    /// Reads the records. A namespace that was being made when the service ended counts as the service's if it has the
    /// mark now. Later the mark would prove nothing, because others could have read it there.
    pub(super) async fn load(
        &self,
        namespaces: &Api<Namespace>,
        request_timeout: Duration,
    ) -> Result<(), KubernetesError> {
        let begun: Vec<(String, Made)> = {
            let known = self.0.known().await?.lock().await;
            known
                .iter()
                .filter(|(_, made)| matches!(made, Made::Begun(_)))
                .map(|(n, m)| (n.clone(), m.clone()))
                .collect()
        };
        for (name, made) in begun {
            let policy = RetryPolicy::for_a_minute(request_timeout);
            let read = || namespaces.get_metadata_opt(&name);
            let found = retrying(&policy, &format!("read Namespace {name}"), read).await?;
            match found.map(|found| found.metadata).filter(|found| made.is(found)) {
                Some(ObjectMeta { uid: Some(uid), .. }) => self.0.record(&name, &Made::Done(uid)).await?,
                _ => self.0.forget(&name).await?,
            }
        }
        Ok(())
    }

    /// Waits for the turn to make or use the namespace.
    pub(super) async fn turn(&self, name: &str) -> Result<Turn<'_>, KubernetesError> {
        let permit = self.0.turns.take(&name.to_owned()).await;
        let known = self.0.known().await?.lock().await.get(name).cloned();
        let made = match known {
            Some(made) => made,
            None => self.0.begin(name).await?,
        };
        Ok(Turn { namespaces: &self.0, name: name.to_owned(), made, _permit: permit })
    }
}

impl Inner {
    async fn known(&self) -> Result<&Mutex<BTreeMap<String, Made>>, KubernetesError> {
        let read = async || {
            let all = self.records.all().await?;
            let known = all.into_iter().filter_map(|(name, made)| Some((name, Made::parse(&made)?)));
            Ok(Mutex::new(known.collect()))
        };
        self.known.get_or_try_init(read).await
    }

    async fn record(&self, name: &str, made: &Made) -> Result<(), KubernetesError> {
        self.records.set(name, &made.to_text()).await?;
        self.known().await?.lock().await.insert(name.to_owned(), made.clone());
        Ok(())
    }

    /// Records that the namespace is about to be made. If the service ends in between, the record identifies the
    /// namespace as the service's.
    async fn begin(&self, name: &str) -> Result<Made, KubernetesError> {
        let begun = Made::Begun(Uuid::new_v4().to_string());
        self.record(name, &begun).await?;
        Ok(begun)
    }

    /// Records the uid of a namespace.
    async fn done(&self, name: &str, namespace: &DynamicObject) -> Result<(), KubernetesError> {
        let Some(uid) = namespace.metadata.uid.clone() else { return Ok(()) };
        let made = Made::Done(uid);
        let is_known = self.known().await?.lock().await.get(name) == Some(&made);
        if is_known { Ok(()) } else { self.record(name, &made).await }
    }

    async fn forget(&self, name: &str) -> Result<(), KubernetesError> {
        self.records.remove(name).await?;
        self.known().await?.lock().await.remove(name);
        Ok(())
    }
}

impl Turn<'_> {
    /// Records that the namespace is about to be made again.
    pub(super) async fn begin(&mut self) -> Result<(), KubernetesError> {
        self.made = self.namespaces.begin(&self.name).await?;
        Ok(())
    }

    /// Marks the namespace to create, which distinguishes it from one that somebody else has made.
    pub(super) fn marked(&self, mut namespace: DynamicObject) -> DynamicObject {
        if let Made::Begun(mark) = &self.made {
            let annotations = namespace.metadata.annotations.get_or_insert_default();
            annotations.insert(MADE_ANNOTATION.to_owned(), mark.clone());
        }
        namespace
    }

    /// True if the service has made this namespace.
    pub(super) fn has_made(&self, found: &DynamicObject) -> bool {
        self.made.is(&found.metadata)
    }

    /// Records the uid of a namespace that the service has made.
    pub(super) async fn done(&self, namespace: &DynamicObject) -> Result<(), KubernetesError> {
        self.namespaces.done(&self.name, namespace).await
    }
}

impl Made {
    /// True for the metadata of the namespace that was made.
    fn is(&self, found: &ObjectMeta) -> bool {
        match self {
            Self::Begun(mark) => {
                found.annotations.as_ref().and_then(|found| found.get(MADE_ANNOTATION)) == Some(mark)
            }
            Self::Done(uid) => found.uid.as_ref() == Some(uid),
        }
    }

    fn to_text(&self) -> String {
        match self {
            Self::Begun(mark) => format!("begun {mark}"),
            Self::Done(uid) => format!("uid {uid}"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        match text.split_once(' ')? {
            ("begun", mark) => Some(Self::Begun(mark.to_owned())),
            ("uid", uid) if !uid.is_empty() => Some(Self::Done(uid.to_owned())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for made in [Made::Begun("x-1".into()), Made::Done("0c-1".into())] {
            assert_eq!(Made::parse(&made.to_text()), Some(made));
        }
        for text in ["", "uid", "uid ", "other x"] {
            assert_eq!(Made::parse(text), None, "{text:?}");
        }
    }
}

//! Which namespaces that stay are the service's. Anybody who may create namespaces could make one of the right name first,
//! and would receive what is put into it: tokens of users and secrets of the site.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::DynamicObject;
use tokio::sync::{Mutex, OnceCell};
use uuid::Uuid;
use wasmspawner_core::config::NamespacePattern;
use wasmspawner_core::labels::MADE_ANNOTATION;

use super::{ConfigMapRecords, KubernetesError};
use crate::per_key::PerKey;

/// The namespaces that the service has made and that stay, by their uids. Clones share them.
#[derive(Clone)]
pub struct RetainedNamespaces(Arc<Inner>);

struct Inner {
    records: ConfigMapRecords,
    /// What the records say.
    known: OnceCell<Mutex<BTreeMap<String, Made>>>,
    /// One at a time asks for a namespace.
    turns: PerKey<String>,
    named: Vec<NamespacePattern>,
}

/// How far the making of a namespace has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Made {
    /// It is being made, and has this annotation then.
    Begun(String),
    /// It has this uid.
    Done(String),
}

/// The turn of one spawn to have a namespace, until it is dropped.
pub(super) struct Turn<'a> {
    namespaces: &'a Inner,
    name: String,
    pub(super) made: Made,
    _permit: Option<tokio::sync::OwnedSemaphorePermit>,
}

impl RetainedNamespaces {
    /// The namespaces in `records`, beside those that the operator names.
    pub fn new(records: ConfigMapRecords, named: Vec<NamespacePattern>) -> Self {
        Self(Arc::new(Inner { records, known: OnceCell::new(), turns: PerKey::one(), named }))
    }

    /// True for a namespace that is for labs whoever has made it.
    pub(super) fn is_named_by_operator(&self, name: &str) -> bool {
        self.0.named.iter().any(|pattern| pattern.matches(name))
    }

    /// Waits for the turn to have the namespace. It is recorded before that it is being made, so that it is known as the
    /// service's if the service ends in between.
    pub(super) async fn turn(&self, name: &str) -> Result<Turn<'_>, KubernetesError> {
        let permit = self.0.turns.take(&name.to_owned()).await;
        let known = self.0.known().await?.lock().await.get(name).cloned();
        let made = if let Some(made) = known {
            made
        } else {
            let begun = Made::Begun(Uuid::new_v4().to_string());
            self.0.record(name, &begun).await?;
            begun
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
}

impl Turn<'_> {
    /// The namespace to create, which can be told from one that somebody else has made.
    pub(super) fn marked(&self, mut namespace: DynamicObject) -> DynamicObject {
        if let Made::Begun(mark) = &self.made {
            let annotations = namespace.metadata.annotations.get_or_insert_default();
            annotations.insert(MADE_ANNOTATION.to_owned(), mark.clone());
        }
        namespace
    }

    /// True if the service has made this namespace.
    pub(super) fn has_made(&self, found: &DynamicObject) -> bool {
        let metadata = &found.metadata;
        match &self.made {
            Made::Begun(mark) => {
                let found = metadata.annotations.as_ref().and_then(|found| found.get(MADE_ANNOTATION));
                found == Some(mark)
            }
            Made::Done(uid) => metadata.uid.as_ref() == Some(uid),
        }
    }

    /// Records the uid of a namespace that the service has made.
    pub(super) async fn done(&self, namespace: &DynamicObject) -> Result<(), KubernetesError> {
        let made = Made::Done(namespace.metadata.uid.clone().unwrap_or_default());
        if made == self.made { Ok(()) } else { self.namespaces.record(&self.name, &made).await }
    }
}

impl Made {
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

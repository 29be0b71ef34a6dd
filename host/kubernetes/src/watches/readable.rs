//! Objects as the API server sends them, including those that cannot be read. Anybody who may write objects of a kind
//! can make an unreadable one, for example with a time in the year 9999. It must not keep the service from reading the
//! others.

use std::borrow::Cow;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Resource;
use kube::runtime::watcher;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use wasmspawner_outgoing::json_problem;

/// An object of which at least the name can be read.
#[derive(Clone, Debug)]
pub struct Readable<K> {
    /// The object. If the rest cannot be read, it has only its name, namespace, uid and labels.
    object: K,
    /// The reason why the rest cannot be read.
    problem: Option<String>,
}

/// The reason why an object cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct UnreadableObject(String);

impl<K: Resource> Readable<K> {
    /// Returns the object if all of it can be read. Otherwise logs that it is left out.
    pub fn whole(self) -> Option<K> {
        let Some(problem) = self.problem else { return Some(self.object) };
        let ObjectMeta { namespace, name, uid, .. } = self.object.meta();
        tracing::warn!(
            kind = std::any::type_name::<K>(),
            namespace,
            name,
            uid,
            problem,
            "an object cannot be read and is left out"
        );
        None
    }

    /// Returns the object, or an error if it cannot be read.
    pub fn required(self) -> Result<K, UnreadableObject> {
        match self.problem {
            None => Ok(self.object),
            Some(problem) => Err(UnreadableObject(problem)),
        }
    }

    /// Returns the change if its object can be read. A deletion is returned for every object.
    pub fn change(change: watcher::Event<Self>) -> Option<watcher::Event<K>> {
        Some(match change {
            watcher::Event::Init => watcher::Event::Init,
            watcher::Event::InitDone => watcher::Event::InitDone,
            watcher::Event::InitApply(object) => watcher::Event::InitApply(object.whole()?),
            watcher::Event::Apply(object) => watcher::Event::Apply(object.whole()?),
            watcher::Event::Delete(object) => watcher::Event::Delete(object.object),
        })
    }
}

impl<'de, K: DeserializeOwned> Deserialize<'de> for Readable<K> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // The API server sends the type of a change before the object, so the text of the object is available here.
        let text = Box::<RawValue>::deserialize(deserializer)?;
        let error = match serde_json::from_str(text.get()) {
            Ok(object) => return Ok(Self { object, problem: None }),
            Err(error) => error,
        };
        // Clients write the managed fields, and this service does not read them.
        let mut value: Value = serde_json::from_str(text.get()).map_err(D::Error::custom)?;
        if let Some(metadata) = value.get_mut("metadata").and_then(Value::as_object_mut) {
            metadata.remove("managedFields");
        }
        if let Ok(object) = K::deserialize(&value) {
            return Ok(Self { object, problem: None });
        }
        let texts = |from: &Value, fields: &[&str]| -> Map<String, Value> {
            let texts =
                fields.iter().filter_map(|field| Some(((*field).to_owned(), from[field].as_str()?.into())));
            texts.collect()
        };
        let mut named = texts(&value, &["apiVersion", "kind"]);
        let mut metadata = texts(&value["metadata"], &["name", "namespace", "uid", "resourceVersion"]);
        metadata.extend(value["metadata"].get("labels").map(|labels| ("labels".to_owned(), labels.clone())));
        named.insert("metadata".to_owned(), metadata.into());
        let object = K::deserialize(Value::Object(named)).map_err(D::Error::custom)?;
        Ok(Self { object, problem: Some(json_problem(&error)) })
    }
}

impl<K: Resource> Resource for Readable<K> {
    type DynamicType = K::DynamicType;
    type Scope = K::Scope;

    fn kind(of: &Self::DynamicType) -> Cow<'_, str> {
        K::kind(of)
    }

    fn group(of: &Self::DynamicType) -> Cow<'_, str> {
        K::group(of)
    }

    fn version(of: &Self::DynamicType) -> Cow<'_, str> {
        K::version(of)
    }

    fn plural(of: &Self::DynamicType) -> Cow<'_, str> {
        K::plural(of)
    }

    fn metadata_api() -> bool {
        K::metadata_api()
    }

    fn meta(&self) -> &ObjectMeta {
        self.object.meta()
    }

    fn meta_mut(&mut self) -> &mut ObjectMeta {
        self.object.meta_mut()
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::{Event, Pod};
    use kube::core::{ObjectList, WatchEvent};
    use serde_json::json;

    use super::*;

    /// The latest time that the API server stores, and one that it stores in a form of its own.
    const TIMES: [&str; 2] = ["9999-12-31T23:59:59Z", "10000-01-01T04:59:59Z"];

    #[test]
    fn a_pod_is_read_whatever_time_its_fields_were_changed() {
        for time in TIMES {
            let pod = json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "labels": { "b": "c" },
                "managedFields": [{ "manager": "m", "operation": "Update", "time": time }] } });
            let list =
                json!({ "apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [pod] }).to_string();
            let list: ObjectList<Readable<Pod>> = serde_json::from_str(&list).unwrap();
            let [pod] = <[_; 1]>::try_from(list.items).unwrap();
            assert_eq!(pod.whole().unwrap().metadata.labels.unwrap()["b"], "c");
        }
    }

    #[test]
    fn an_object_that_cannot_be_read_keeps_others_from_nothing() {
        for time in TIMES {
            let event = |name: &str, time: &str| json!({ "metadata": { "name": name, "uid": "u" }, "involvedObject": {}, "lastTimestamp": time });
            let list = json!({ "apiVersion": "v1", "kind": "EventList", "metadata": { "resourceVersion": "7" },
                "items": [event("bad", time), event("good", "2026-01-01T00:00:00Z")] });
            let list: ObjectList<Readable<Event>> = serde_json::from_str(&list.to_string()).unwrap();
            let names = list.items.into_iter().filter_map(|event| event.whole()?.metadata.name);
            assert_eq!(names.collect::<Vec<_>>(), ["good"]);

            let mut labelled = event("bad", time);
            labelled["metadata"]["labels"] = json!({ "of": "somebody" });
            let bad: Readable<Event> = serde_json::from_value(labelled).unwrap();
            assert_eq!(bad.meta().labels.as_ref().unwrap()["of"], "somebody", "it is deleted as its own");
            assert!(bad.required().is_err());

            let change = format!(r#"{{"type": "DELETED", "object": {}}}"#, event("bad", time));
            let WatchEvent::Deleted(gone) =
                serde_json::from_str::<WatchEvent<Readable<Event>>>(&change).unwrap()
            else {
                panic!("it is the end of an event")
            };
            let Some(watcher::Event::Delete(gone)) = Readable::change(watcher::Event::Delete(gone)) else {
                panic!("an end is told")
            };
            assert_eq!(gone.metadata.uid.as_deref(), Some("u"));
        }
    }
}

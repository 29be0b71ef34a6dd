//! The served kinds of Kubernetes.

use super::Resource;
use super::codec::Codec;
use super::rules;
use crate::apiserver::failure::qualified;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{
    ConfigMap, Event, LimitRange, Namespace, Node, PersistentVolumeClaim, Pod, ResourceQuota, Secret,
    ServiceAccount,
};
use k8s_openapi::api::networking::v1::NetworkPolicy;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Returns all built-in kinds, in the order of discovery.
pub(super) fn all() -> Vec<Resource> {
    vec![
        cluster::<Namespace>("namespaces", &["ns"]).with(&["status", "finalize"]),
        cluster::<Node>("nodes", &["no"]).with(&["status"]),
        namespaced::<Pod>("pods", &["po"])
            .with(&["status", "log", "binding"])
            .in_all()
            .counting_generations(),
        namespaced::<ConfigMap>("configmaps", &["cm"]),
        namespaced::<Secret>("secrets", &[]),
        namespaced::<ServiceAccount>("serviceaccounts", &["sa"]),
        namespaced::<Event>("events", &["ev"]),
        namespaced::<PersistentVolumeClaim>("persistentvolumeclaims", &["pvc"]).with(&["status"]),
        namespaced::<ResourceQuota>("resourcequotas", &["quota"]).with(&["status"]),
        namespaced::<LimitRange>("limitranges", &["limits"]),
        namespaced::<NetworkPolicy>("networkpolicies", &["netpol"]).counting_generations(),
        namespaced::<Lease>("leases", &[]),
        cluster::<CustomResourceDefinition>("customresourcedefinitions", &["crd", "crds"])
            .with(&["status"])
            .counting_generations(),
    ]
}

fn cluster<T>(plural: &str, short_names: &[&str]) -> Resource
where
    T: k8s_openapi::Resource + DeserializeOwned + Serialize,
{
    Resource {
        group: T::GROUP.to_owned(),
        version: T::VERSION.to_owned(),
        plural: plural.to_owned(),
        singular: T::KIND.to_lowercase(),
        kind: T::KIND.to_owned(),
        short_names: short_names.iter().map(|&s| s.to_owned()).collect(),
        categories: Vec::new(),
        namespaced: false,
        subresources: Vec::new(),
        counts_generations: false,
        columns: Vec::new(),
        collection: qualified(T::GROUP, plural).into(),
        schema: rules::schema(T::GROUP, plural),
        codec: Codec::typed::<T>(),
    }
}

fn namespaced<T>(plural: &str, short_names: &[&str]) -> Resource
where
    T: k8s_openapi::Resource + DeserializeOwned + Serialize,
{
    Resource { namespaced: true, ..cluster::<T>(plural, short_names) }
}

impl Resource {
    fn with(mut self, subresources: &[&'static str]) -> Self {
        self.subresources = subresources.to_vec();
        self
    }

    fn in_all(mut self) -> Self {
        self.categories.push("all".to_owned());
        self
    }

    fn counting_generations(mut self) -> Self {
        self.counts_generations = true;
        self
    }
}

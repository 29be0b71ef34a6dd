//! The objects that route requests from outside to a lab: a Service, and an object that routes to it.

use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::Serialize;
use serde_json::Value;

use super::object_kind::ObjectKind;
use super::service::service_name;
use super::{metadata, service};
use crate::config::{LabRoutes, RouteFields, RouteKind};
use crate::policy::ValidatedSpawn;

/// An object that routes requests, of one of several kinds.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Route {
    api_version: &'static str,
    kind: &'static str,
    /// The metadata.
    pub metadata: ObjectMeta,
    spec: Value,
    #[serde(skip)]
    of_kind: RouteKind,
}

impl Route {
    /// The object's kind with its API group.
    pub fn object_kind(&self) -> ObjectKind {
        object_kind(self.of_kind)
    }
}

/// Returns the kinds of the objects that route requests to a lab, for deleting them.
pub fn route_kinds(routes: &LabRoutes) -> Vec<ObjectKind> {
    let route = routes.route.as_ref();
    route.map(|route| vec![ObjectKind::of::<Service>(), object_kind(route.kind)]).unwrap_or_default()
}

fn object_kind(kind: RouteKind) -> ObjectKind {
    match kind {
        RouteKind::Ingress => {
            ObjectKind { group: "networking.k8s.io", version: "v1", kind: "Ingress", plural: "ingresses" }
        }
        RouteKind::HttpRoute => ObjectKind {
            group: "gateway.networking.k8s.io",
            version: "v1",
            kind: "HTTPRoute",
            plural: "httproutes",
        },
    }
}

/// Builds the objects that route requests to a lab. Returns `None` if requests reach the lab in another way.
pub fn build_routes(spawn: &ValidatedSpawn, routes: &LabRoutes) -> Option<(Service, Route)> {
    let template = routes.route.as_ref()?;
    let name = &service_name(&spawn.names.pod);
    let fields = RouteFields {
        name: name.as_str(),
        namespace: spawn.names.namespace.as_str(),
        prefix: spawn.base_url(),
        port: spawn.port,
    };
    let mut metadata = metadata::of_lab(spawn, name);
    metadata
        .annotations
        .get_or_insert_default()
        .extend(template.annotations.iter().map(|(name, value)| (name.clone(), fields.fill(value))));
    let (api_version, kind) = match template.kind {
        RouteKind::Ingress => ("networking.k8s.io/v1", "Ingress"),
        RouteKind::HttpRoute => ("gateway.networking.k8s.io/v1", "HTTPRoute"),
    };
    let spec = fields.fill_value(&template.spec.clone().into());
    let route = Route { api_version, kind, metadata, spec, of_kind: template.kind };
    Some((service::in_front_of(spawn), route))
}

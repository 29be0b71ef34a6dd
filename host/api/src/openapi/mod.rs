//! The API's OpenAPI document, derived from the handlers, and a page to read it.

pub(crate) mod answers;
mod names;
mod nublado;

use axum::extract::State;
use axum::response::{Html, IntoResponse};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use utoipa::openapi::path::{Operation, PathItem};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityScheme};
use utoipa::openapi::{SecurityRequirement, ServerBuilder};
use utoipa::{Modify, OpenApi};
use wasmspawner_core::config::{Dialect, HttpConfig};

use self::answers::{CommonErrors, RequestIds};
use self::names::{NamedServers, Names};
use super::problem::{Detail, ErrorBody};
use super::wire;

#[derive(OpenApi)]
#[openapi(
    info(
        title = "wasmspawner",
        description = "Starts, watches and stops Jupyter labs on Kubernetes. Every answer with a 4xx or 5xx status has an `ErrorBody`, a method that a route does not know included (405, with `Allow`); every answer has the header `x-request-id`. `Accept` is not looked at. JupyterHub's named servers have the same routes below `/servers/{server}`.",
        license(name = "Apache-2.0"),
    ),
    paths(
        crate::routes::labs::list_labs, crate::routes::lab_status::get_lab_status, crate::routes::lab_lookup::find_lab, crate::routes::lab::get_lab, crate::routes::lab::stop_lab, crate::routes::spawn::spawn_lab,
        crate::routes::events::follow_events, crate::routes::history::get_history, crate::routes::jobs::get_job, crate::routes::logs::get_logs, crate::routes::volumes::get_volumes,
        crate::routes::volumes::release_volumes, crate::routes::spawn_form::get_spawn_form, crate::routes::spawn_form::get_spawn_form_again,
        crate::routes::kernels::list_kernels, crate::routes::kernels::start_kernel, crate::routes::kernels::get_kernel, crate::routes::kernels::stop_kernel,
        crate::routes::kernels::follow_kernel_events, crate::routes::kernels::signal_kernel, crate::routes::kernels::restart_kernel,
        crate::routes::kernels::connect_launcher, crate::routes::kernels::report_process,
        crate::routes::dask_pools::list_pools, crate::routes::dask_pools::start_pool, crate::routes::dask_pools::get_pool, crate::routes::dask_pools::stop_pool,
        crate::routes::dask_pools::scale_pool, crate::routes::dask_pools::follow_pool_events, crate::routes::dask_pools::connect_scheduler, crate::routes::dask_pools::report_workers,
        crate::routes::environments::list_environments, crate::routes::environments::release_target, crate::routes::environments::retire_target,
        crate::routes::blueprints::list_blueprints, crate::routes::blueprints::list_blueprint_choices, crate::routes::blueprints::resolve_blueprint,
        crate::routes::images::list_images, crate::routes::images::get_image_menu, crate::routes::prepulls::list_prepulls,
        crate::routes::forgotten::list_forgotten, crate::routes::retained::list_retained, crate::routes::orphans::list_orphans, crate::routes::orphans::delete_orphans,
        crate::routes::policies::list_policies, crate::routes::policies::reload_policies, crate::routes::config::reload_config, get_openapi, browse,
    ),
    components(schemas(wire::Blueprint, wire::BlueprintChoice, wire::ResolvedBlueprint, wire::DaskPool, wire::DaskPoolBody, wire::ScaledPool, wire::SchedulerReport, wire::WorkersBody, wire::Environments, wire::ForgottenLabs, wire::ImageMenu, wire::Job, wire::RetainedObject, wire::Kernel, wire::KernelBody, wire::KnownImages, wire::Process, wire::Signal, wire::Lab, wire::LabLookup, wire::LabStatusReport, wire::Operation, wire::Orphan, wire::Policy, wire::ReloadedConfig, wire::SpawnBody, wire::SpawnFormBody, wire::StatusFilter, ErrorBody, Detail)),
    modifiers(&Credentials, &Names, &NamedServers, &CommonErrors, &RequestIds),
    tags((name = "labs", description = "Labs of users"), (name = "kernels", description = "Kernels that labs start"), (name = "dask", description = "Dask pools that labs start"), (name = "environments", description = "Where labs run"), (name = "blueprints", description = "Descriptions of labs that users choose"), (name = "images", description = "Images of labs"), (name = "policies", description = "The site's rules"), (name = "orphans", description = "What belongs to no lab, and what stays when labs end"), (name = "document", description = "This description")),
)]
struct Document;

/// The document as it is sent. All answers share it, because it is served without a credential.
#[derive(Clone)]
pub struct Description(Bytes);

impl Description {
    /// Describes the API with the dialects of a checked configuration.
    pub fn for_config(config: &HttpConfig) -> serde_json::Result<Self> {
        Ok(Self(serde_json::to_vec(&document(config))?.into()))
    }
}

fn document(config: &HttpConfig) -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    document.servers = Some(vec![ServerBuilder::new().url(config.prefix.as_str()).build()]);
    for dialect in &config.dialects {
        match dialect {
            Dialect::Nublado => document.merge(nublado::document(&config.nublado_prefix)),
        }
    }
    document
}

/// The OpenAPI 3.1 document of this API.
#[utoipa::path(
    get, path = "/openapi.json", tag = "document", operation_id = "get_openapi", security(()),
    responses((status = 200, description = "The document", body = Object))
)]
pub(crate) async fn get_openapi(State(description): State<Description>) -> impl IntoResponse {
    ([(CACHE_CONTROL, "max-age=300"), (CONTENT_TYPE, "application/json")], description.0)
}

/// A page for reading this API's description in a browser.
#[utoipa::path(
    get, path = "/docs", tag = "document", operation_id = "browse", security(()),
    responses((status = 200, description = "The page", body = String, content_type = "text/html"))
)]
pub(crate) async fn browse() -> impl IntoResponse {
    let own_only =
        "default-src 'none'; connect-src 'self'; script-src 'unsafe-inline'; style-src 'unsafe-inline'";
    ([(CONTENT_SECURITY_POLICY, own_only)], Html(include_str!("../browse.html")))
}

/// Adds the security scheme: a bearer token.
struct Credentials;

impl Modify for Credentials {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        let components = document.components.get_or_insert_default();
        components.add_security_scheme("token", SecurityScheme::Http(bearer));
        document.security = Some(vec![SecurityRequirement::new::<_, [&str; 0], &str>("token", [])]);
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.put, &mut item.delete].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::routes;
    use serde_json::Value;
    use std::collections::BTreeSet;

    fn json() -> Value {
        serde_json::to_value(document(&HttpConfig::default())).unwrap()
    }

    #[test]
    fn the_documented_routes_are_those_that_are_served() {
        let documented: BTreeSet<(String, String)> = json()["paths"]
            .as_object()
            .unwrap()
            .iter()
            .flat_map(|(path, item)| {
                let methods = item.as_object().unwrap().keys().filter(|key| *key != "parameters");
                methods.map(|method| (method.to_uppercase(), path.clone())).collect::<Vec<_>>()
            })
            .collect();
        let served: BTreeSet<_> =
            routes().into_iter().map(|route| (route.method.to_owned(), route.path)).collect();
        assert_eq!(documented, served);
    }

    /// The page lists every route once. Those of named servers are described below the table.
    #[test]
    fn the_page_has_all_routes() {
        let page = include_str!("../README.md");
        let named = page.split('`').skip(1).step_by(2);
        let named = named.filter(|text| {
            ["GET /", "POST /", "PUT /", "DELETE /"].iter().any(|verb| text.starts_with(verb))
        });
        let on_page: BTreeSet<String> =
            named.map(|text| text.split('?').next().unwrap_or_default().to_owned()).collect();
        let routes = routes().into_iter().filter(|route| !route.path.contains("/servers/{server}"));
        let served: BTreeSet<String> = routes
            .map(|route| format!("{} {}", route.method, route.path.replace("{username}", "{user}")))
            .collect();
        assert_eq!(on_page, served);
    }

    #[test]
    fn the_document_is_openapi_3_1_with_the_prefix_as_server() {
        let json = json();
        assert_eq!(json["openapi"], "3.1.0");
        assert_eq!(json["servers"][0]["url"], "/spawner/v1");
    }

    #[test]
    fn closed_sets_are_listed() {
        let json = json();
        for (schema, values) in [
            ("LabStatus", vec!["starting", "running", "terminating", "failed"]),
            ("StatusFilter", vec!["starting", "running", "terminating", "failed", "all"]),
            ("PodPresence", vec!["present", "missing"]),
            ("OperationKind", vec!["spawn", "stop", "cleanup"]),
            ("Outcome", vec!["complete", "failed", "cancelled"]),
            ("Blame", vec!["user", "policy", "cluster", "service"]),
            ("Severity", vec!["info", "warning", "critical"]),
            ("KeptBecause", vec!["retained", "shared"]),
            ("ShownAt", vec!["first", "rest", "hidden"]),
            ("OnServerDeletion", vec!["retain", "delete"]),
        ] {
            let described = &json["components"]["schemas"][schema];
            assert_eq!(
                (&described["type"], &described["enum"]),
                (&"string".into(), &values.into()),
                "{schema}"
            );
        }
        let stages = json["components"]["schemas"]["Stage"]["enum"].as_array().unwrap();
        assert_eq!(stages.len(), 10, "{stages:?}");
    }

    #[test]
    fn each_kind_of_event_has_a_schema() {
        let json = json();
        let stream = &json["paths"]["/labs/{username}/events"]["get"]["responses"]["200"]["content"];
        assert_eq!(stream["text/event-stream"]["schema"]["$ref"], "#/components/schemas/StreamEvent");
        let kinds = &json["components"]["schemas"]["StreamEvent"]["discriminator"]["mapping"];
        let kinds = kinds.as_object().unwrap();
        let names: Vec<&str> = kinds.keys().map(String::as_str).collect();
        assert_eq!(names, ["complete", "error", "failed", "info", "progress", "stage"]);
        for (kind, reference) in kinds {
            let event = json.pointer(reference.as_str().unwrap().trim_start_matches('#')).unwrap();
            assert_eq!(event["properties"]["event"]["enum"], serde_json::json!([kind]));
            assert_eq!(event["required"], serde_json::json!(["id", "event", "data"]));
        }
    }

    #[test]
    fn every_reference_has_its_target() {
        let config = HttpConfig { dialects: vec![Dialect::Nublado], ..HttpConfig::default() };
        let json = serde_json::to_value(document(&config)).unwrap();
        let mut references = Vec::new();
        collect(&json, &mut references);
        assert!(!references.is_empty());
        for reference in references {
            let target = reference.strip_prefix('#').and_then(|pointer| json.pointer(pointer));
            assert!(target.is_some(), "{reference} leads nowhere");
        }
    }

    fn collect(value: &Value, references: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                references.extend(fields.get("$ref").and_then(Value::as_str).map(str::to_owned));
                fields.values().for_each(|field| collect(field, references));
            }
            Value::Array(list) => list.iter().for_each(|element| collect(element, references)),
            _ => {}
        }
    }

    #[test]
    fn operation_ids_are_unique_and_path_parameters_are_declared() {
        let json = json();
        let mut ids = BTreeSet::new();
        for (path, item) in json["paths"].as_object().unwrap() {
            let declared: Vec<&str> = item["parameters"]
                .as_array()
                .map(|list| list.iter().filter_map(|parameter| parameter["name"].as_str()).collect())
                .unwrap_or_default();
            let used: Vec<&str> =
                path.split('/').filter_map(|step| step.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(declared, used, "{path}");
            for (method, operation) in
                item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters")
            {
                let id = operation["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{id} is there twice");
                let answers = operation["responses"].as_object().unwrap();
                assert!(answers.keys().any(|status| status.starts_with(['2', '3'])), "{method} {path}");
            }
        }
    }
}

//! All routes of the API, each with its handler.

pub(crate) mod around;
#[cfg(test)]
mod lists;
pub(crate) mod ready;
pub(crate) mod refused;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodRouter, delete, get, post, put};
use http::StatusCode;
use tower_http::catch_panic::CatchPanicLayer;
use wasmspawner_core::config::Dialect;

use self::around::{every_request, panicked};
use self::ready::{when_history_known, when_ready};
use super::dialects::nublado;
use super::openapi::{browse, get_openapi};
use super::state::Api;
use crate::route::Callers::{
    self, Administrators, Anybody, Overseers, OwnProgram, Owners, OwnersAndOverseers, Starters,
};
use crate::route::{Route, route};
use crate::routes::blueprints::{list_blueprint_choices, list_blueprints, resolve_blueprint};
use crate::routes::config::reload_config;
use crate::routes::dask_pools::{
    connect_scheduler, follow_pool_events, get_pool, list_pools, report_workers, scale_pool, start_pool,
    stop_pool,
};
use crate::routes::environments::{list_environments, release_target, retire_target};
use crate::routes::events::follow_events;
use crate::routes::forgotten::list_forgotten;
use crate::routes::history::get_history;
use crate::routes::images::{get_image_menu, list_images};
use crate::routes::jobs::get_job;
use crate::routes::kernels::{
    connect_launcher, follow_kernel_events, get_kernel, list_kernels, report_process, restart_kernel,
    signal_kernel, start_kernel, stop_kernel,
};
use crate::routes::lab::{get_lab, stop_lab};
use crate::routes::lab_lookup::find_lab;
use crate::routes::lab_status::get_lab_status;
use crate::routes::labs::list_labs;
use crate::routes::logs::get_logs;
use crate::routes::orphans::{delete_orphans, list_orphans};
use crate::routes::policies::{list_policies, reload_policies};
use crate::routes::prepulls::list_prepulls;
use crate::routes::retained::list_retained;
use crate::routes::spawn::spawn_lab;
use crate::routes::spawn_form::{get_spawn_form, get_spawn_form_again};
use crate::routes::volumes::{get_volumes, release_volumes};

/// The routes that answer only once the service is ready.
fn lab_routes() -> Vec<Route> {
    let single = [
        route("GET", "/labs", Overseers, get(list_labs)),
        route("GET", "/lab-status", Overseers, get(get_lab_status)),
        route("GET", "/lab-lookup", OwnersAndOverseers, get(find_lab)),
        route("GET", "/forgotten", Overseers, get(list_forgotten)),
        route("GET", "/retained", Administrators, get(list_retained)),
        route("GET", "/orphans", Administrators, get(list_orphans)),
        route("DELETE", "/orphans", Administrators, delete(delete_orphans)),
        route("GET", "/environments", Administrators, get(list_environments)),
        route("POST", "/environments/targets/{target}/release", Administrators, post(release_target)),
        route("DELETE", "/environments/targets/{target}", Administrators, delete(retire_target)),
        route("GET", "/blueprints", Administrators, get(list_blueprints)),
        route("GET", "/images", Overseers, get(list_images)),
        route("GET", "/prepulls", Overseers, get(list_prepulls)),
        route("GET", "/policies", Administrators, get(list_policies)),
        route("POST", "/policies/reload", Administrators, post(reload_policies)),
        route("POST", "/config/reload", Administrators, post(reload_config)),
    ];
    let of_servers = vec![
        of_server("GET", "/labs/{username}", "", OwnersAndOverseers, get(get_lab)),
        of_server("DELETE", "/labs/{username}", "", OwnersAndOverseers, delete(stop_lab)),
        of_server("POST", "/labs/{username}", "/spawn", Starters, post(spawn_lab)),
        of_server("GET", "/labs/{username}", "/events", OwnersAndOverseers, get(follow_events)),
        of_server("GET", "/labs/{username}", "/logs", Owners, get(get_logs)),
        of_server("GET", "/labs/{username}", "/volumes", OwnersAndOverseers, get(get_volumes)),
        of_server("DELETE", "/labs/{username}", "/volumes", Overseers, delete(release_volumes)),
        of_server("GET", "/spawn-form/{username}", "", OwnersAndOverseers, get(get_spawn_form)),
        of_server("POST", "/spawn-form/{username}", "", OwnersAndOverseers, post(get_spawn_form_again)),
        of_server("GET", "/images/{username}", "", OwnersAndOverseers, get(get_image_menu)),
        of_server("GET", "/blueprints/{username}", "", OwnersAndOverseers, get(list_blueprint_choices)),
        of_server(
            "GET",
            "/blueprints/{username}",
            "/resolved/{blueprint}",
            OwnersAndOverseers,
            get(resolve_blueprint),
        ),
    ];
    let of_servers = of_servers.into_iter().chain(kernel_routes()).chain(pool_routes());
    single.into_iter().chain(of_servers.flatten()).collect()
}

/// The routes about the history.
fn history_routes() -> Vec<Route> {
    let of_servers = of_server("GET", "/labs/{username}", "/history", OwnersAndOverseers, get(get_history));
    of_servers.into_iter().chain([route("GET", "/jobs/{job_id}", OwnersAndOverseers, get(get_job))]).collect()
}

/// The routes about kernels.
fn kernel_routes() -> Vec<[Route; 2]> {
    vec![
        of_server("GET", "/labs/{username}", "/kernels", OwnersAndOverseers, get(list_kernels)),
        of_server("POST", "/labs/{username}", "/kernels/{kernel}", Owners, post(start_kernel)),
        of_server("GET", "/labs/{username}", "/kernels/{kernel}", OwnersAndOverseers, get(get_kernel)),
        of_server("DELETE", "/labs/{username}", "/kernels/{kernel}", OwnersAndOverseers, delete(stop_kernel)),
        of_server(
            "GET",
            "/labs/{username}",
            "/kernels/{kernel}/events",
            OwnersAndOverseers,
            get(follow_kernel_events),
        ),
        of_server(
            "POST",
            "/labs/{username}",
            "/kernels/{kernel}/signal",
            OwnersAndOverseers,
            post(signal_kernel),
        ),
        of_server("POST", "/labs/{username}", "/kernels/{kernel}/restart", Owners, post(restart_kernel)),
        of_server("GET", "/labs/{username}", "/kernels/{kernel}/launcher", OwnProgram, get(connect_launcher)),
        of_server("PUT", "/labs/{username}", "/kernels/{kernel}/launcher", OwnProgram, put(report_process)),
    ]
}

/// The routes about Dask pools.
fn pool_routes() -> Vec<[Route; 2]> {
    vec![
        of_server("GET", "/labs/{username}", "/dask-pools", OwnersAndOverseers, get(list_pools)),
        of_server("POST", "/labs/{username}", "/dask-pools/{pool}", Owners, post(start_pool)),
        of_server("GET", "/labs/{username}", "/dask-pools/{pool}", OwnersAndOverseers, get(get_pool)),
        of_server("DELETE", "/labs/{username}", "/dask-pools/{pool}", OwnersAndOverseers, delete(stop_pool)),
        of_server("POST", "/labs/{username}", "/dask-pools/{pool}/scale", Owners, post(scale_pool)),
        of_server(
            "GET",
            "/labs/{username}",
            "/dask-pools/{pool}/events",
            OwnersAndOverseers,
            get(follow_pool_events),
        ),
        of_server(
            "GET",
            "/labs/{username}",
            "/dask-pools/{pool}/scheduler",
            OwnProgram,
            get(connect_scheduler),
        ),
        of_server("PUT", "/labs/{username}", "/dask-pools/{pool}/scheduler", OwnProgram, put(report_workers)),
    ]
}

/// The routes that need no credential.
fn public_routes() -> Vec<Route> {
    vec![
        route("GET", "/openapi.json", Anybody, get(get_openapi)),
        route("GET", "/docs", Anybody, get(browse)),
    ]
}

/// All routes, for comparing them with the document.
#[cfg(test)]
pub(crate) fn routes() -> Vec<Route> {
    lab_routes().into_iter().chain(history_routes()).chain(public_routes()).collect()
}

/// Builds the router of the API, with all routes below the prefix. A body may have at most `body_limit` bytes.
pub fn router(api: Api, dialects: &[Dialect], body_limit: usize) -> Router {
    let labs = collect(lab_routes()).route_layer(from_fn_with_state(api.labs.clone(), when_ready));
    let history =
        collect(history_routes()).route_layer(from_fn_with_state(api.labs.clone(), when_history_known));
    let routes = labs.merge(history).merge(collect(public_routes()));
    let mut all = Router::new().nest(api.prefix.as_str(), routes);
    for dialect in dialects {
        let (prefix, routes) = match dialect {
            Dialect::Nublado => (api.nublado_prefix.as_str(), nublado::routes()),
        };
        let routes = collect(routes).route_layer(from_fn_with_state(api.labs.clone(), when_ready));
        all = all.nest(prefix, routes.route_layer(from_fn(nublado::translated)));
    }
    all.fallback(|| async { StatusCode::NOT_FOUND })
        .method_not_allowed_fallback(|| async { StatusCode::METHOD_NOT_ALLOWED })
        .layer(DefaultBodyLimit::max(body_limit))
        .layer(CatchPanicLayer::custom(panicked))
        .layer(from_fn_with_state(api.metrics.clone(), every_request))
        .with_state(api)
}

/// The routes of one handler, for the user's default server and for a named one.
fn of_server(
    method: &'static str,
    lab: &str,
    rest: &str,
    callers: Callers,
    handler: MethodRouter<Api>,
) -> [Route; 2] {
    [
        route(method, &format!("{lab}{rest}"), callers, handler.clone()),
        route(method, &format!("{lab}/servers/{{server}}{rest}"), callers, handler),
    ]
}

fn collect(routes: Vec<Route>) -> Router<Api> {
    routes.into_iter().fold(Router::new(), |router, Route { method, path, handler, .. }| {
        tracing::debug!(method, path, "serves");
        router.route(&path, handler)
    })
}

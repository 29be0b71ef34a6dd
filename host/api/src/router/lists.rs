//! The lists of routes outside this crate: those from which the chart makes its ingresses, and the page of the API.

use std::collections::{BTreeMap, BTreeSet};

use crate::dialects::nublado;
use crate::route::Callers;
use crate::route::Route;
use crate::router::routes;

impl Callers {
    /// Returns the column of the page of the API.
    fn on_page(self) -> &'static str {
        match self {
            Self::Starters | Self::Owners => "U, A",
            Self::OwnersAndOverseers => "U, H, A",
            Self::Overseers => "H, A",
            Self::Administrators => "A",
            Self::OwnProgram => "own token",
            Self::Anybody => "none needed",
        }
    }
}

/// Returns the name of the ingress for a path whose routes are for these callers. An ingress does not see methods, so
/// it lets in the callers of all methods, and the service refuses the others.
fn ingress(callers: &BTreeSet<Callers>) -> &'static str {
    let open = |callers: &Callers| matches!(callers, Callers::OwnProgram | Callers::Anybody);
    assert!(
        callers.iter().all(open) || !callers.iter().any(open),
        "a path without a credential of an ingress has none for any method: {callers:?}"
    );
    if callers.iter().all(open) {
        return "anonymous";
    }
    if callers.contains(&Callers::Starters) {
        assert_eq!(callers.len(), 1, "a path that starts labs has no other routes: {callers:?}");
        return "spawn";
    }
    if callers.iter().all(|callers| *callers == Callers::Owners) {
        return "owners";
    }
    if callers.contains(&Callers::Owners) || callers.contains(&Callers::OwnersAndOverseers) {
        return "labs";
    }
    if callers.contains(&Callers::Overseers) { "hub" } else { "admin" }
}

fn by_ingress(routes: Vec<Route>) -> BTreeMap<&'static str, Vec<String>> {
    let mut callers: BTreeMap<String, BTreeSet<Callers>> = BTreeMap::new();
    for route in routes {
        callers.entry(route.path).or_default().insert(route.callers);
    }
    let mut paths: BTreeMap<_, Vec<String>> = BTreeMap::new();
    for (path, callers) in callers {
        paths.entry(ingress(&callers)).or_default().push(path);
    }
    paths
}

/// The chart makes its ingresses from this file. `UPDATE_GOLDEN=1` rewrites it.
#[test]
fn the_chart_has_the_paths_of_all_routes_by_ingress() {
    let lists = BTreeMap::from([("own", by_ingress(routes())), ("nublado", by_ingress(nublado::routes()))]);
    let expected = format!("{}\n", serde_json::to_string_pretty(&lists).unwrap());
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../deploy/chart/files/routes.json");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(file, &expected).unwrap();
    }
    let chart = std::fs::read_to_string(file).unwrap_or_default();
    assert_eq!(chart, expected, "UPDATE_GOLDEN=1 writes {file}");
}

#[test]
fn the_page_says_for_whom_each_route_is() {
    let page = include_str!("../README.md");
    let methods = ["GET", "POST", "PUT", "DELETE"];
    let of_route = |line: &&str| methods.iter().any(|method| line.starts_with(&format!("| `{method} /")));
    let rows = page.lines().filter(of_route);
    let on_page: BTreeSet<(String, String)> = rows
        .filter_map(|row| {
            let (named, rest) = row.trim_matches(['|', ' ']).split_once(" | ")?;
            let (_, callers) = rest.rsplit_once(" | ")?;
            Some((named.to_owned(), callers.trim_start_matches("the launcher's ").to_owned()))
        })
        .flat_map(|(named, callers)| {
            let routes = named.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>();
            routes
                .into_iter()
                .map(move |route| (route, callers.trim_start_matches("the scheduler's ").to_owned()))
        })
        .map(|(route, callers)| (route.split('?').next().unwrap_or_default().to_owned(), callers))
        .collect();
    let routes = routes().into_iter().filter(|route| !route.path.contains("/servers/{server}"));
    let served: BTreeSet<(String, String)> = routes
        .map(|route| {
            let path = route.path.replace("{username}", "{user}");
            (format!("{} {path}", route.method), route.callers.on_page().to_owned())
        })
        .collect();
    assert_eq!(on_page, served);
}

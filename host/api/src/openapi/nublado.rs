//! The part of the document about the dialect of Nublado.

use utoipa::OpenApi;
use utoipa::openapi::ServerBuilder;

use super::names::Names;

#[derive(OpenApi)]
#[openapi(
    paths(
        crate::dialects::nublado::labs::list_labs, crate::dialects::nublado::labs::get_lab, crate::dialects::nublado::labs::delete_lab, crate::dialects::nublado::labs::create_lab, crate::dialects::nublado::labs::follow_events, crate::dialects::nublado::labs::get_own_lab,
        crate::dialects::nublado::choices::get_form, crate::dialects::nublado::choices::list_images, crate::dialects::nublado::choices::list_prepulls,
    ),
    components(schemas(crate::dialects::nublado::LabState, crate::dialects::nublado::NubladoErrors, crate::dialects::nublado::PrepullerStatus, crate::dialects::nublado::SpawnerImages)),
    modifiers(&Names),
    tags((name = "nublado", description = "The API of the controller of Nublado 15")),
)]
struct Document;

/// Describes the routes below `prefix`, which have it as their server.
pub(super) fn document(prefix: &str) -> utoipa::openapi::OpenApi {
    let mut document = Document::openapi();
    for item in document.paths.paths.values_mut() {
        item.servers = Some(vec![ServerBuilder::new().url(prefix).build()]);
    }
    document
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dialects::nublado::routes;

    #[test]
    fn the_documented_routes_are_those_that_are_served() {
        let json = serde_json::to_value(document("/nublado")).unwrap();
        let mut documented = BTreeSet::new();
        for (path, item) in json["paths"].as_object().unwrap() {
            assert_eq!(item["servers"][0]["url"], "/nublado");
            let methods = item
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| !matches!(key.as_str(), "parameters" | "servers"));
            documented.extend(methods.map(|method| (method.to_uppercase(), path.clone())));
        }
        let served: BTreeSet<_> =
            routes().into_iter().map(|route| (route.method.to_owned(), route.path)).collect();
        assert_eq!(documented, served);
    }
}

//! `GET /openapi.json` and `GET /docs`

use std::collections::BTreeSet;

use http::Method;
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::service::Service;

use crate::BINARY;

#[tokio::test]
async fn every_documented_route_is_served() {
    let service = Service::start(BINARY).await.unwrap();
    let document = service.stranger().get(&format!("{PREFIX}/openapi.json")).await.unwrap().json().unwrap();
    assert_eq!((&document["openapi"], &document["servers"][0]["url"]), (&"3.1.0".into(), &PREFIX.into()));
    let admin = service.admin().unwrap();
    let mut served = BTreeSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        let methods = item.as_object().unwrap().iter().filter(|(key, _)| *key != "parameters");
        for (method, operation) in methods {
            let concrete = format!(
                "{PREFIX}{}",
                path.replace("{username}", "ada").replace("{server}", "x").replace("{kernel}", "k")
            );
            let verb: Method = method.to_uppercase().parse().unwrap();
            let answer = admin.send(admin.request(verb, &concrete)).await.unwrap();
            let documented =
                operation["responses"].as_object().unwrap().contains_key(&answer.status.to_string());
            assert!(documented, "{method} {concrete} answers {answer:?}, which is not documented");
            assert!(!answer.body.contains("unknown_route"), "{method} {concrete} is not served");
            served.insert(path.clone());
        }
    }
    assert_eq!(served.len(), 60, "{served:?}");
}

#[tokio::test]
async fn the_documentation_page_loads_nothing_from_other_hosts() {
    let service = Service::start(BINARY).await.unwrap();
    let page = service.stranger().get(&format!("{PREFIX}/docs")).await.unwrap();
    assert_eq!((page.status, page.header("content-type")), (200, "text/html; charset=utf-8"));
    assert!(!page.body.contains("http://") && !page.body.contains("https://"), "it refers to somewhere else");
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
}

//! The small policies of `plugins`, as components with their example configurations.

use super::*;

/// The policies whose folder has a `config.yaml`.
fn recipes() -> Vec<(String, serde_json::Value)> {
    let plugins = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../plugins"));
    let mut found = Vec::new();
    for entry in plugins.read_dir().unwrap() {
        let folder = entry.unwrap();
        if let Ok(config) = std::fs::read_to_string(folder.path().join("config.yaml")) {
            let name = folder.file_name().into_string().unwrap();
            found.push((name, serde_saphyr::from_str(&config).unwrap()));
        }
    }
    found
}

#[tokio::test]
async fn every_recipe_is_loaded_and_prepared_with_its_example() {
    let recipes = recipes();
    assert_eq!(recipes.len(), 9, "{recipes:?}");
    for (name, config) in recipes {
        let policies = load(vec![spec(&name, &format!("policy-{name}"), config)]).await;
        let loaded = &policies.loaded()[0];
        assert!(loaded.preparation.prepared, "{loaded:?}");
        // The policies must answer for a user without groups, whatever the answer is.
        let eve = user("eve", &[]);
        let lab = LabRequest { user: eve.clone(), ..LabRequest::default() };
        policies.customize(&lab).await.unwrap();
        policies.authorize(&spawn_request(eve.clone())).await.unwrap();
        policies.limits(&eve, Usage::default(), &Subject::default()).await.unwrap();
        policies.render_form(&FormContext { user: eve, server: String::new() }).await.unwrap();
    }
}

/// Policies of a chain decide about a lab together.
#[tokio::test]
async fn recipes_work_together() {
    let named = |wanted: &str| {
        let (name, config) = recipes().into_iter().find(|(name, _)| name == wanted).unwrap();
        spec(&name, &format!("policy-{name}"), config)
    };
    let chain = ["project-storage", "course", "node-pools", "sizes-by-group"].map(named);
    let policies = load(chain.into()).await;
    let ada = user("ada", &["staff", "proj-moon", "formgrade-physics"]);
    let lab = LabRequest { user: ada, ..LabRequest::default() };
    let answers = policies.customize(&lab).await.unwrap();
    let mounts = answers.iter().flat_map(|answer| &answer.customization.mounts);
    let paths: Vec<_> = mounts.map(|mount| mount.path.as_str()).collect();
    assert_eq!(
        paths,
        [
            "/projects/moon",
            "/courses/physics/exchange",
            "/courses/physics/shared",
            "/courses/physics/grading"
        ]
    );
    assert_eq!(answers[2].customization.node_selector[0].value, "large");
    assert_eq!(answers[3].customization.resources.as_ref().unwrap().memory_limit_bytes, Some(2 << 30));
}

//! `host.expand`

use std::sync::Arc;

use serde_json::json;
use wasmspawner_core::names::{NameTemplates, NamesConfig, ServerName, Username};
use wasmspawner_core::policy::{EnvVar, LabRequest, Options, Value};
use wasmspawner_policies::LoadErrorKind;

use crate::{load, refused, spec, user};

#[tokio::test]
async fn a_policy_expands_templates_of_its_operator_only() {
    let config = json!({
        "env": {"WHO": "{username} in {namespace}", "JSON": "{{}}"},
        "options": [{"name": "note", "kind": "text", "env": "NOTE"}],
    });
    let policies = load(vec![spec("p", "policy-default", config)]).await;
    let names = NameTemplates::parse(&NamesConfig::default()).unwrap();
    let (ada, default) = (Username::parse("ada").unwrap(), ServerName::parse("").unwrap());
    let request = LabRequest {
        user: user("ada", &[]),
        options: Options::from([("note".into(), Value::Text("{username}".into()))]),
        fields: Some(Arc::new(names.resolve(&ada, &default, None).unwrap().fields)),
        ..LabRequest::default()
    };
    let answers = policies.customize(&request).await.unwrap();
    let expected = [("JSON", "{}"), ("WHO", "ada in nublado-ada"), ("NOTE", "{username}")];
    assert_eq!(answers[0].customization.env, expected.map(|(name, value)| EnvVar::literal(name, value)));

    let kind = refused(spec("p", "policy-default", json!({"env": {"WHO": "{usrname}"}}))).await;
    let LoadErrorKind::Config(problems) = kind else { panic!("{kind}") };
    assert_eq!(problems[0].field, "/env");
    assert!(
        problems[0].message.contains("unknown field {usrname}; the fields are "),
        "{}",
        problems[0].message
    );
}

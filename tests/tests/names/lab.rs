//! The objects that the service would create for a lab.

use serde_json::json;
use wasmspawner_core::config::lab::{LabConfig, LabSection, SiteSecretData};
use wasmspawner_core::manifest::{LabObjects, build};
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::{Compat, LabelValue, NameTemplates, NamesConfig, ServerName, Username};
use wasmspawner_core::policy::compose::{PodOwner, compose};
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::policy::user_string::Wanted;
use wasmspawner_core::policy::{Author, ChainAnswer, Grants, ImageInputs, LabServer, Options, SpawnInputs};
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::values::secret::SecretString;

/// The objects of a lab with every object that is named after its user.
pub(crate) fn lab(user: &Username, server: &ServerName) -> LabObjects {
    let config = NamesConfig { compat: Compat::V7_1_0, ..NamesConfig::default() };
    let lab = LabConfig::parse(LabSection::default(), LabelValue::parse("test").unwrap()).unwrap();
    let customization = json!({
        "image": { "reference": "quay.io/jupyter/base-notebook:latest" },
        "volumes": [{
            "name": "home",
            "source": { "claim": { "claim_name": "{pvc_name}", "create": { "storage_bytes": 1_073_741_824 } } },
        }],
    });
    let spawn = compose(SpawnInputs {
        port: None,
        spawn: LabelValue::parse("5d3c0f5e-0000-4000-8000-000000000002").unwrap(),
        names: NameTemplates::parse(&config).unwrap().resolve(user, server, None).unwrap(),
        request: SpawnRequest {
            wanted: Wanted::default(),
            requested_by: "test".to_owned(),
            key: LabKey::new(user.clone(), server.clone()),
            identity: serde_json::from_value::<Identity>(
                json!({ "username": user, "uid": 1000, "gid": 1000 }),
            )
            .unwrap(),
            options: Options::default(),
            env: [("JUPYTERHUB_USER".parse().unwrap(), user.to_string())].into(),
            token: SecretString::new("secret"),
        },
        job_id: "0196f000-0000-7000-8000-000000000001".parse().unwrap(),
        answers: vec![ChainAnswer {
            author: Author::Policy("site".to_owned()),
            component: None,
            grants: Grants::default(),
            customization: serde_json::from_value(customization).unwrap(),
            server: LabServer::default(),
            files: Vec::new(),
        }],
        quotas: Vec::new(),
        lab: &lab,
        site_secrets: SiteSecretData::new(),
        provisioned: false,
        images: ImageInputs::default(),
        pod: PodOwner::Lab,
    });
    build(&spawn.unwrap())
}

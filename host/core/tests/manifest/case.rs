//! A spawn that is described by a YAML file.

use std::collections::BTreeMap;

use serde::Deserialize;
use wasmspawner_core::config::NamespaceReclaim;
use wasmspawner_core::config::lab::{LabConfig, LabSection, SecretKey, SiteSecretData};
use wasmspawner_core::manifest::{LabObjects, build};
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::names::{EnvName, LabelValue, NameTemplates, NamesConfig, ObjectName, ServerName};
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::policy::user_string::Wanted;
use wasmspawner_core::policy::{
    Author, ChainAnswer, Customization, Grants, Image, ImageInputs, LabServer, Options, SpawnInputs,
    SpawnRejected, TextFile, ValidatedSpawn,
    compose::{PodOwner, Source, compose},
};
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::users::quota::Quota;
use wasmspawner_core::values::secret::{SecretBytes, SecretString};

/// All inputs of a spawn. Keys that are absent have their defaults.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Case {
    pub(crate) identity: Identity,
    #[serde(default)]
    pub(crate) server: ServerName,
    #[serde(default)]
    pub(crate) options: Options,
    #[serde(default)]
    pub(crate) env: BTreeMap<EnvName, String>,
    #[serde(default)]
    pub(crate) names: NamesConfig,
    #[serde(default)]
    pub(crate) namespaces: NamespaceReclaim,
    #[serde(default)]
    pub(crate) lab: LabSection,
    #[serde(default)]
    pub(crate) answers: Vec<CaseAnswer>,
    #[serde(default)]
    pub(crate) quotas: Vec<Quota>,
    /// Values of the site's secrets, by name and key.
    #[serde(default)]
    pub(crate) secrets: BTreeMap<ObjectName, BTreeMap<String, String>>,
    #[serde(default)]
    pub(crate) provisioned: bool,
    /// The image of a menu, with the policy whose menu it is.
    #[serde(default)]
    pub(crate) chosen: Option<(String, Image)>,
    #[serde(default)]
    pub(crate) is_child: bool,
    #[serde(default)]
    pub(crate) in_workload: bool,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CaseAnswer {
    pub(crate) policy: String,
    /// True for the settings of a blueprint of this name.
    #[serde(default)]
    pub(crate) is_blueprint: bool,
    #[serde(default)]
    pub(crate) grants: Grants,
    #[serde(default)]
    pub(crate) customization: Customization,
    #[serde(default)]
    pub(crate) server: LabServer,
    #[serde(default)]
    pub(crate) files: Vec<TextFile>,
}

/// The token of every case. If it occurs outside a Secret, it has leaked.
pub(crate) const TOKEN: &str = "gt-the-users-own-token";

impl Case {
    pub(crate) fn read(yaml: &str) -> Self {
        serde_saphyr::from_str(yaml).unwrap()
    }

    pub(crate) fn compose(self) -> Result<ValidatedSpawn, SpawnRejected> {
        let lab = LabConfig::parse(self.lab, LabelValue::parse("test").unwrap()).unwrap();
        let lab = lab.with_namespaces(self.namespaces);
        let key = LabKey::new(self.identity.username.clone(), self.server);
        let names = NameTemplates::parse(&self.names).unwrap().resolve(&key.user, &key.server, None).unwrap();
        let answers = self.answers.into_iter().map(|answer| ChainAnswer {
            author: if answer.is_blueprint {
                Author::Blueprint(answer.policy)
            } else {
                Author::Policy(answer.policy)
            },
            component: None,
            grants: answer.grants,
            customization: answer.customization,
            server: answer.server,
            files: answer.files,
        });
        let quotas = self.quotas.into_iter().enumerate();
        let quotas = quotas.map(|(at, quota)| (Source::Policy(format!("quota-{at}")), quota)).collect();
        let mut site_secrets = SiteSecretData::new();
        for (name, keys) in self.secrets {
            for (key, value) in keys {
                site_secrets.insert(SecretKey { name: name.clone(), key }, SecretBytes::new(value));
            }
        }
        compose(SpawnInputs {
            port: None,
            request: SpawnRequest {
                wanted: Wanted::default(),
                requested_by: "ada".to_owned(),
                key,
                identity: self.identity,
                options: self.options,
                env: self.env,
                token: SecretString::new(TOKEN),
            },
            job_id: "0196f000-0000-7000-8000-000000000001".parse().unwrap(),
            spawn: LabelValue::parse("5d3c0f5e-0000-4000-8000-000000000002").unwrap(),
            names,
            answers: answers.collect(),
            quotas,
            lab: &lab,
            site_secrets,
            provisioned: self.provisioned,
            images: ImageInputs {
                chosen: self.chosen.map(|(policy, image)| (Source::Policy(policy), image)),
                ..ImageInputs::default()
            },
            pod: match (self.is_child, self.in_workload) {
                (true, _) => PodOwner::Child,
                (false, true) => PodOwner::Workload,
                (false, false) => PodOwner::Lab,
            },
        })
    }

    pub(crate) fn objects(self) -> LabObjects {
        build(&self.compose().unwrap())
    }
}

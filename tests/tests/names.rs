//! Two thousand people with all kinds of names: every object of their labs is accepted by the API server.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use kube::Client;
use serde_json::{Value, json};
use wasmspawner_core::config::lab::{LabConfig, LabSite, SiteSecretData};
use wasmspawner_core::identity::Identity;
use wasmspawner_core::lab::LabKey;
use wasmspawner_core::manifest::{LabObject, LabObjects, build};
use wasmspawner_core::names::{Compat, LabelValue, NameTemplates, NamesConfig, ServerName, Username};
use wasmspawner_core::policy::compose::compose;
use wasmspawner_core::policy::{Answer, Grants, Options, SpawnInputs};
use wasmspawner_core::secret::SecretString;
use wasmspawner_core::spawn::SpawnRequest;
use wasmspawner_embedded::apiserver::{self, ApiServer};

const LABS: usize = 2_000;

#[tokio::test]
async fn every_object_of_two_thousand_labs_is_accepted() {
    let client = ApiServer::open(apiserver::Options::default()).unwrap().client();
    let mut random = Random(0x2026);
    let (mut labs, mut namespaces, mut objects) = (BTreeSet::new(), BTreeSet::new(), 0);
    while labs.len() < LABS {
        let (user, server) = (random.name(), random.server());
        let (Ok(user), Ok(server)) = (Username::parse(user), ServerName::parse(server)) else { continue };
        if !labs.insert((user.clone(), server.clone())) {
            continue;
        }
        for object in lab(&user, &server).in_order() {
            // A user's servers share the namespace.
            if object.kind() == "Namespace" && !namespaces.insert(object.name().to_owned()) {
                continue;
            }
            if let Err(refusal) = create(&client, &object).await {
                panic!("{object:?} of user {user:?}, server {server:?}: {refusal}");
            }
            objects += 1;
        }
    }
    assert!(objects > LABS * 6, "{objects} objects");
}

/// Without this the test above would say nothing.
#[tokio::test]
async fn the_api_server_refuses_bad_names() {
    let client = ApiServer::open(apiserver::Options::default()).unwrap().client();
    for name in ["", "-ada", "Ada", "ada_l", "é", &"a".repeat(254)] {
        let body = json!({ "apiVersion": "v1", "kind": "ConfigMap", "metadata": { "name": name } });
        let refusal =
            post(&client, "/api/v1/namespaces/default/configmaps".to_owned(), &body).await.unwrap_err();
        assert!(matches!(&refusal, kube::Error::Api(status) if status.code == 422), "{name:?}: {refusal}");
    }
}

fn lab(user: &Username, server: &ServerName) -> LabObjects {
    let config = NamesConfig { compat: Compat::V7_1_0, ..NamesConfig::default() };
    let site = LabSite::parse(LabConfig::default(), LabelValue::parse("test").unwrap()).unwrap();
    let customization = json!({
        "image": { "reference": "quay.io/jupyter/base-notebook:latest" },
        "volumes": [{
            "name": "home",
            "source": { "claim": { "claim_name": "{pvc_name}", "create": { "storage_bytes": 1_073_741_824 } } },
        }],
    });
    let spawn = compose(SpawnInputs {
        names: NameTemplates::parse(&config).unwrap().resolve(user, server, None).unwrap(),
        request: SpawnRequest {
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
        answers: vec![Answer {
            policy: "site".to_owned(),
            grants: Grants::default(),
            customization: serde_json::from_value(customization).unwrap(),
        }],
        quotas: Vec::new(),
        site: &site,
        site_secrets: SiteSecretData::new(),
        provisioned: false,
    });
    build(&spawn.unwrap())
}

async fn create(client: &Client, object: &LabObject) -> Result<Value, kube::Error> {
    let collection = match object.kind() {
        "Namespace" => "/api/v1/namespaces".to_owned(),
        kind => {
            let group = if kind == "NetworkPolicy" { "/apis/networking.k8s.io/v1" } else { "/api/v1" };
            let plural = kind.to_lowercase().replace("policy", "policie") + "s";
            format!(
                "{group}/namespaces/{}/{plural}",
                object.metadata().namespace.as_deref().unwrap_or_default()
            )
        }
    };
    post(client, collection, &object.to_value()).await
}

async fn post(client: &Client, collection: String, object: &Value) -> Result<Value, kube::Error> {
    let body = serde_json::to_vec(object).unwrap();
    let request =
        http::Request::post(collection).header("content-type", "application/json").body(body).unwrap();
    client.request(request).await
}

/// A sequence of names that is the same in every run (xorshift).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap() % limit
    }

    /// From plain to hostile: one alphabet a name, at most 80 characters.
    fn name(&mut self) -> String {
        const ALPHABETS: [&str; 6] = [
            "abcxyz019",
            "abcABC-._@+ 09",
            "-",
            "--a9",
            "äßéñ日本語😀\u{301}\u{130}\u{131}\u{17f}\u{212a}\u{200b}a",
            // Braces are refused where a policy names storage by a template.
            "!'\"\\:;$`<>&|*?~#%\u{4}\n/a1",
        ];
        let alphabet: Vec<char> = ALPHABETS[self.below(ALPHABETS.len())].chars().collect();
        let longest = if self.below(3) == 0 { 80 } else { 16 };
        let length = 1 + self.below(longest);
        (0..length).map(|_| alphabet[self.below(alphabet.len())]).collect()
    }

    fn server(&mut self) -> String {
        if self.below(2) == 0 { String::new() } else { self.name() }
    }
}

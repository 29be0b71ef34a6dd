//! Labs that answer over TLS, with a certificate of their own.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use serde_json::{Value, json};
use wasmspawner_tests::api::PREFIX;
use wasmspawner_tests::kubernetes::SKIPPED;

use crate::labs::{assert_permitted, gone, lab_url, service_with, set_lab_service, start};
use crate::site::{ONE_NAMESPACE, Site, until};

pub(crate) const CERTIFICATES: &str = include_str!("../../../deploy/permissions/certificates.yaml");
const BY_NAME: &str = "https://{name}.{namespace}.svc:{port}";
const AUTHORITY: &str = "lab-authority";

/// An operator's certificate authority: its certificate and its key.
struct Authority {
    certificate: String,
    key: String,
}

impl Authority {
    fn new() -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
        let certificate = params.self_signed(&key).unwrap().pem();
        Self { certificate, key: key.serialize_pem() }
    }

    /// Creates the Secret that `kubectl create secret tls` makes.
    async fn store(&self, site: &Site, namespace: &str) {
        let secrets: Api<Secret> = Api::namespaced(site.cluster.client.clone(), namespace);
        let secret = json!({ "metadata": { "name": AUTHORITY }, "type": "kubernetes.io/tls",
            "stringData": { "tls.crt": self.certificate, "tls.key": self.key } });
        secrets.create(&PostParams::default(), &serde_json::from_value(secret).unwrap()).await.unwrap();
    }

    /// Fails unless the certificate in the lab's Secret is from this authority, and for this name.
    fn assert_has_issued(&self, secret: &Secret, name: &str) {
        let data = secret.data.as_ref().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = |file: &str, content: &[u8]| {
            let path = folder.path().join(file);
            std::fs::write(&path, content).unwrap();
            path
        };
        let authority = file("authority", self.certificate.as_bytes());
        let certificate = file("certificate", &data["tls.crt"].0);
        let key = file("key", &data["tls.key"].0);
        let openssl = |arguments: &[&str]| {
            let output = Command::new("openssl").args(arguments).output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
            text
        };
        let (authority, certificate) = (authority.to_str().unwrap(), certificate.to_str().unwrap());
        openssl(&[
            "verify",
            "-purpose",
            "sslserver",
            "-verify_hostname",
            name,
            "-CAfile",
            authority,
            certificate,
        ]);
        let public = openssl(&["x509", "-in", certificate, "-noout", "-pubkey"]);
        assert_eq!(
            openssl(&["pkey", "-in", key.to_str().unwrap(), "-pubout"]),
            public,
            "the key is another one"
        );
        assert_eq!(data["ca.crt"].0, self.certificate.as_bytes());
    }
}

fn with_certificates(config: &mut Value, certificate: &Value) {
    config["names"]["pod"] = json!("{user_server}");
    config["lab"]["service"] = json!({ "lab_url": BY_NAME, "certificate": certificate });
}

/// Checks that the lab's program and the kubelet use the mounted certificate.
fn assert_serves_tls(pod: &Pod) {
    let spec = pod.spec.as_ref().unwrap();
    let container = &spec.containers[0];
    let mounts = container.volume_mounts.as_ref().unwrap();
    let mount = mounts.iter().find(|mount| mount.mount_path == "/etc/wasmspawner/tls").unwrap();
    let volumes = spec.volumes.as_ref().unwrap();
    let volume = volumes.iter().find(|volume| volume.name == mount.name).unwrap();
    assert!(volume.secret.as_ref().unwrap().secret_name.as_ref().unwrap().starts_with("tls."));
    for probe in [&container.startup_probe, &container.readiness_probe] {
        let request = probe.as_ref().unwrap().http_get.as_ref().unwrap();
        assert_eq!(request.scheme.as_deref(), Some("HTTPS"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_lab_has_a_certificate_of_the_site_s_authority() {
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    let labs = site.namespace("labs").await;
    let mut service = service_with(&site, "single", &labs, |config| {
        with_certificates(config, &json!({ "authority": AUTHORITY }));
    });
    service.run().await.unwrap();
    let (ada, eve, admin) =
        (service.user("ada").unwrap(), service.user("eve").unwrap(), service.admin().unwrap());

    // The operator has forgotten the Secret.
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    assert!(events.iter().any(|event| event.data.contains(AUTHORITY)), "{events:#?}");
    ada.stop_to_end("ada").await.unwrap();

    let authority = Authority::new();
    authority.store(&site, site.name()).await;
    start(&ada, "ada").await;
    start(&eve, "eve").await;
    assert_eq!(lab_url(&ada, "ada").await, format!("https://ada.{labs}.svc:8888"));
    let client = site.cluster.client.clone();
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &labs);
    let of_lab = async |user: &str| secrets.get(&format!("tls.nb-{user}")).await.unwrap();
    let pods: Api<Pod> = Api::namespaced(client, &labs);
    for user in ["ada", "eve"] {
        let secret = of_lab(user).await;
        authority.assert_has_issued(&secret, &format!("{user}.{labs}.svc"));
        assert_serves_tls(&pods.get(user).await.unwrap());
    }
    assert_ne!(of_lab("ada").await.data.unwrap()["tls.key"], of_lab("eve").await.data.unwrap()["tls.key"]);
    // The API does not return the key.
    let shown = admin.get(&format!("{PREFIX}/labs/ada")).await.unwrap();
    assert!(!format!("{shown:?}").contains("PRIVATE KEY"), "{shown:?}");

    // Running labs keep the settings of their start, whatever the configuration says now.
    set_lab_service(&service, &admin, json!({ "lab_url": "http://{name}.{namespace}.svc:{port}" })).await;
    assert_eq!(lab_url(&ada, "ada").await, format!("https://ada.{labs}.svc:8888"));
    service.crash_and_restart().await.unwrap();
    assert_eq!(lab_url(&ada, "ada").await, format!("https://ada.{labs}.svc:8888"));
    ada.stop_to_end("ada").await.unwrap();
    gone(&secrets, "tls.nb-ada").await;
    start(&ada, "ada").await;
    set_lab_service(
        &service,
        &admin,
        json!({ "lab_url": BY_NAME, "certificate": { "authority": AUTHORITY } }),
    )
    .await;
    assert_eq!(lab_url(&ada, "ada").await, format!("http://ada.{labs}.svc:8888"));
    assert_eq!(lab_url(&eve, "eve").await, format!("https://eve.{labs}.svc:8888"));

    for (user, lab) in [(&ada, "ada"), (&eve, "eve")] {
        user.stop_to_end(lab).await.unwrap();
    }
    gone(&secrets, "tls.nb-eve").await;
    assert_permitted(&service);
    site.leave().await;
}

const DEFINITIONS: [&str; 4] = ["certificates", "certificaterequests", "issuers", "clusterissuers"];

/// The controllers of cert-manager, as a process.
struct CertManager(Child);

impl CertManager {
    /// The folder with its programs and definitions; `None` if nobody has built them.
    fn folder() -> Option<PathBuf> {
        std::env::var_os("CERT_MANAGER").map(PathBuf::from)
    }

    async fn start(site: &Site, folder: &std::path::Path) -> Self {
        for definition in DEFINITIONS {
            let file = folder.join(format!("cert-manager.io_{definition}.yaml"));
            site.apply(&std::fs::read_to_string(&file).unwrap()).await;
        }
        until(async || certificates(site, "default").list(&ListParams::default()).await.is_ok()).await;
        let mut command = Command::new(folder.join("cert-manager"));
        command.arg("--kubeconfig").arg(site.cluster.file()).stdout(Stdio::null()).stderr(Stdio::null());
        Self(command.spawn().unwrap())
    }
}

/// Removes cert-manager's objects from a cluster, even after a failed test.
async fn remove_definitions(site: &Site) {
    let definitions: Api<CustomResourceDefinition> = Api::all(site.cluster.client.clone());
    for definition in DEFINITIONS {
        let name = format!("{definition}.cert-manager.io");
        let _ = definitions.delete(&name, &DeleteParams::default()).await;
        gone(&definitions, &name).await;
    }
}

impl Drop for CertManager {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn certificates(site: &Site, namespace: &str) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cert-manager.io", "v1", "Certificate"));
    Api::namespaced_with(site.cluster.client.clone(), namespace, &kind)
}

#[tokio::test(flavor = "multi_thread")]
async fn cert_manager_issues_the_certificate_of_a_lab() {
    let Some(folder) = CertManager::folder() else {
        return println!("skipped: there is no cert-manager; `make control-plane` builds it");
    };
    let Some(site) = Site::enter(ONE_NAMESPACE).await else { return println!("{SKIPPED}") };
    site.install_definition().await;
    site.install_policy().await;
    site.apply(CERTIFICATES).await;
    let labs = site.namespace("labs").await;
    let mut service = service_with(&site, "single", &labs, |config| {
        with_certificates(config, &json!({ "cert_manager": { "issuerRef": { "name": "labs" } } }));
        config["limits"]["spawn"] = json!("20s");
    });
    service.run().await.unwrap();
    let ada = service.user("ada").unwrap();

    // The operator has forgotten cert-manager.
    remove_definitions(&site).await;
    let events = ada.spawn_to_end("ada").await.unwrap();
    assert_eq!(events.last().unwrap().kind, "failed", "{events:#?}");
    assert!(events.iter().any(|event| event.data.contains("cert-manager")), "{events:#?}");
    ada.stop_to_end("ada").await.unwrap();

    let cert_manager = CertManager::start(&site, &folder).await;
    let authority = Authority::new();
    authority.store(&site, &labs).await;
    let issuer = ApiResource::from_gvk(&GroupVersionKind::gvk("cert-manager.io", "v1", "Issuer"));
    let issuers: Api<DynamicObject> = Api::namespaced_with(site.cluster.client.clone(), &labs, &issuer);
    let issuer = json!({ "apiVersion": "cert-manager.io/v1", "kind": "Issuer", "metadata": { "name": "labs" },
        "spec": { "ca": { "secretName": AUTHORITY } } });
    issuers.create(&PostParams::default(), &serde_json::from_value(issuer).unwrap()).await.unwrap();

    start(&ada, "ada").await;
    assert_eq!(lab_url(&ada, "ada").await, format!("https://ada.{labs}.svc:8888"));
    let secrets: Api<Secret> = Api::namespaced(site.cluster.client.clone(), &labs);
    let pods: Api<Pod> = Api::namespaced(site.cluster.client.clone(), &labs);
    assert_serves_tls(&pods.get("ada").await.unwrap());
    // The simulated kubelet does not wait for Secrets, as a real one does.
    until(async || secrets.get_opt("tls.nb-ada").await.unwrap().is_some()).await;
    authority.assert_has_issued(&secrets.get("tls.nb-ada").await.unwrap(), &format!("ada.{labs}.svc"));

    // An attacker with the service's token cannot turn the certificate into an authority, and cannot overwrite another
    // Secret.
    let wanted = certificates(&site, &labs).get("tls.nb-ada").await.unwrap();
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cert-manager.io", "v1", "Certificate"));
    let stolen: Api<DynamicObject> = Api::namespaced_with(site.account_s_client().await, &labs, &kind);
    for (field, value) in [("isCA", json!(true)), ("secretName", json!("nb-ada"))] {
        let mut attempt = json!({ "apiVersion": "cert-manager.io/v1", "kind": "Certificate",
            "metadata": { "name": "tls.forged", "labels": wanted.metadata.labels }, "spec": wanted.data["spec"] });
        attempt["spec"]["secretName"] = json!("tls.forged");
        let harmless: DynamicObject = serde_json::from_value(attempt.clone()).unwrap();
        let dry_run = PostParams { dry_run: true, ..PostParams::default() };
        stolen.create(&dry_run, &harmless).await.unwrap();
        attempt["spec"][field] = value;
        let forged = serde_json::from_value(attempt).unwrap();
        let error = stolen.create(&dry_run, &forged).await.unwrap_err().to_string();
        assert!(error.contains("a certificate of a lab is no authority"), "{error}");
    }

    service.crash_and_restart().await.unwrap();
    ada.stop_to_end("ada").await.unwrap();
    gone(&secrets, "tls.nb-ada").await;
    let left = certificates(&site, &labs).list(&ListParams::default()).await.unwrap();
    assert!(left.items.is_empty(), "{left:#?}");
    assert_permitted(&service);
    drop(cert_manager);
    remove_definitions(&site).await;
    site.leave().await;
}

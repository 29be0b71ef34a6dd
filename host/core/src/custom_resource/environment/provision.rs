//! The objects of a target of the built-in provisioner: a namespace, and an account with the permissions that labs need
//! there.

use std::collections::BTreeMap;

use k8s_openapi::ByteString;
use k8s_openapi::api::authorization::v1::ResourceRule;
use k8s_openapi::api::core::v1::{Namespace, ResourceQuota, ResourceQuotaSpec, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::{PolicyRule, Role, RoleBinding, RoleRef, Subject};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::json;

use super::{KubernetesCredentials, NAMESPACE, OWNER, Parameters, TARGET_LABEL, Target};
use crate::names::labels::ENFORCE_LABEL;
use crate::names::labels::of_installation;
use crate::names::{LabelValue, NamespaceName, ObjectName};

/// The name of the account, of its role, and of the Secret with its token.
const ACCOUNT: &str = "environment";

/// The key of a credentials Secret with a kubeconfig.
pub const CREDENTIALS_KEY: &str = "kubeconfig";

/// The objects of a target.
#[derive(Debug, Clone, PartialEq)]
pub struct ProvisionedObjects {
    /// The namespace, which is created first.
    pub namespace: Namespace,
    /// The resource quota of the namespace.
    pub quota: Option<ResourceQuota>,
    /// The account with permissions in the namespace; absent if the class does not request one.
    pub account: Option<Account>,
}

/// An account with permissions in a single namespace.
#[derive(Debug, Clone, PartialEq)]
pub struct Account {
    /// The service account.
    pub service_account: ServiceAccount,
    /// The permissions of the account.
    pub role: Role,
    /// The binding of the role to the account.
    pub binding: RoleBinding,
    /// The Secret that Kubernetes fills with the account's token.
    pub token: Secret,
}

/// The data with which a target of the built-in provisioner is reached through its own account.
#[derive(Clone)]
pub struct Credentials {
    /// The URL of the API server.
    pub api_url: String,
    /// The account's token.
    pub token: String,
    /// The CA certificate of the API server, in PEM; empty if the CA is publicly trusted.
    pub authority: Vec<u8>,
}

/// Returns the objects of a target of a class with these parameters. Returns `None` if the target does not name a valid
/// namespace, which only an administrator's change can cause.
pub fn provisioned_objects(
    target: &Target,
    parameters: &Parameters,
    instance: &LabelValue,
) -> Option<ProvisionedObjects> {
    let name = NamespaceName::parse(target.annotation(NAMESPACE)?).ok()?;
    let labels = labels(target, instance);
    let mut namespace = Namespace {
        metadata: ObjectMeta {
            name: Some(name.to_string()),
            labels: Some(labels.clone()),
            ..ObjectMeta::default()
        },
        ..Namespace::default()
    };
    let of_namespace = namespace.metadata.labels.get_or_insert_default();
    of_namespace.insert(ENFORCE_LABEL.to_owned(), parameters.pod_security.clone());
    if let Some(owner) = target.annotation(OWNER) {
        namespace.metadata.annotations = Some(BTreeMap::from([(OWNER.to_owned(), owner.to_owned())]));
    }
    let inside = || ObjectMeta {
        name: Some(ACCOUNT.to_owned()),
        namespace: Some(name.to_string()),
        labels: Some(labels.clone()),
        ..ObjectMeta::default()
    };
    let hard = parameters.quota.iter().map(|(resource, amount)| (resource.clone(), Quantity(amount.clone())));
    let quota = (!parameters.quota.is_empty()).then(|| ResourceQuota {
        metadata: inside(),
        spec: Some(ResourceQuotaSpec { hard: Some(hard.collect()), ..ResourceQuotaSpec::default() }),
        ..ResourceQuota::default()
    });
    let account = parameters.credentials.then(|| account(&inside, &name));
    Some(ProvisionedObjects { namespace, quota, account })
}

fn labels(target: &Target, instance: &LabelValue) -> BTreeMap<String, String> {
    let mut labels = of_installation(instance);
    labels.insert(TARGET_LABEL.to_owned(), target.uid().to_owned());
    labels
}

fn account(inside: &impl Fn() -> ObjectMeta, namespace: &NamespaceName) -> Account {
    let mut token = Secret {
        metadata: inside(),
        type_: Some("kubernetes.io/service-account-token".to_owned()),
        ..Secret::default()
    };
    token.metadata.annotations =
        Some(BTreeMap::from([("kubernetes.io/service-account.name".to_owned(), ACCOUNT.to_owned())]));
    Account {
        service_account: ServiceAccount { metadata: inside(), ..ServiceAccount::default() },
        role: Role { metadata: inside(), rules: Some(rules()) },
        binding: RoleBinding {
            metadata: inside(),
            role_ref: RoleRef {
                api_group: Some("rbac.authorization.k8s.io".to_owned()),
                kind: "Role".to_owned(),
                name: ACCOUNT.to_owned(),
            },
            subjects: Some(vec![Subject {
                kind: "ServiceAccount".to_owned(),
                name: ACCOUNT.to_owned(),
                namespace: Some(namespace.to_string()),
                ..Subject::default()
            }]),
        },
        token,
    }
}

/// Returns the permissions that labs need in a namespace: those of `deploy/permissions/one-namespace.yaml` but for
/// Services, which labs have only where the service itself runs. The service cannot grant permissions that it does not
/// have itself.
fn rules() -> Vec<PolicyRule> {
    let rule = |group: &str, resources: &[&str], verbs: &[&str]| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(resources.iter().map(|&name| name.to_owned()).collect()),
        verbs: verbs.iter().map(|&verb| verb.to_owned()).collect(),
        ..PolicyRule::default()
    };
    let networking = "networking.k8s.io";
    vec![
        rule("", &["pods"], &["get", "list", "watch", "create", "delete"]),
        rule("", &["configmaps"], &["list", "create", "patch", "deletecollection"]),
        rule("", &["secrets", "serviceaccounts"], &["create", "patch", "deletecollection"]),
        rule(networking, &["networkpolicies"], &["create", "patch", "deletecollection"]),
        rule("", &["persistentvolumeclaims"], &["get", "create", "patch", "delete"]),
        rule("", &["events"], &["list", "watch"]),
    ]
}

/// Kinds of objects that every lab has. The others depend on the configuration and on policies.
const OF_EVERY_LAB: [&str; 3] = ["pods", "configmaps", "secrets"];

/// Returns the permissions that every lab needs in a namespace and that are not among those `granted` there: API group,
/// resource and verb.
pub fn missing_permissions(granted: &[ResourceRule]) -> Vec<(String, String, String)> {
    let has = |list: Option<&Vec<String>>, wanted: &str| {
        list.into_iter().flatten().any(|granted| granted == "*" || granted == wanted)
    };
    let grants = |rule: &ResourceRule, (group, resource, verb): &(String, String, String)| {
        rule.resource_names.as_ref().is_none_or(Vec::is_empty)
            && has(rule.api_groups.as_ref(), group)
            && has(rule.resources.as_ref(), resource)
            && has(Some(&rule.verbs), verb)
    };
    let mut missing = Vec::new();
    for rule in rules() {
        for group in rule.api_groups.iter().flatten() {
            let of_every_lab = |resource: &&String| OF_EVERY_LAB.contains(&resource.as_str());
            for resource in rule.resources.iter().flatten().filter(of_every_lab) {
                let wanted = rule.verbs.iter().map(|verb| (group.clone(), resource.clone(), verb.clone()));
                missing.extend(wanted.filter(|wanted| !granted.iter().any(|rule| grants(rule, wanted))));
            }
        }
    }
    missing
}

impl Target {
    /// Returns the name of the Secret with the credentials of a provisioned target, in the service's own namespace.
    pub fn credentials_secret_name(&self) -> Option<ObjectName> {
        ObjectName::parse(format!("{}-credentials", self.name())).ok()
    }

    /// Returns the Secret with which others reach the target through its own account. The Secret is in the service's
    /// own namespace, like the target, and is deleted with it.
    pub fn credentials_secret(&self, credentials: &Credentials, instance: &LabelValue) -> Option<Secret> {
        let namespace = self.annotation(NAMESPACE)?;
        let authority =
            (!credentials.authority.is_empty()).then(|| ByteString(credentials.authority.clone()));
        let kubeconfig = json!({
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "cluster", "cluster": {
                "server": credentials.api_url,
                "certificate-authority-data": authority,
            }}],
            "users": [{"name": ACCOUNT, "user": {"token": credentials.token}}],
            "contexts": [{"name": "environment", "context": {
                "cluster": "cluster", "user": ACCOUNT, "namespace": namespace,
            }}],
            "current-context": "environment",
        });
        let data = [
            (CREDENTIALS_KEY, kubeconfig.to_string().into_bytes()),
            ("token", credentials.token.clone().into_bytes()),
            ("ca.crt", credentials.authority.clone()),
            ("namespace", namespace.as_bytes().to_vec()),
        ];
        Some(Secret {
            metadata: ObjectMeta {
                name: self.credentials_secret_name().map(Into::into),
                labels: Some(labels(self, instance)),
                ..ObjectMeta::default()
            },
            data: Some(data.into_iter().map(|(key, value)| (key.to_owned(), ByteString(value))).collect()),
            ..Secret::default()
        })
    }

    /// Returns the target in the state that follows the creation of its objects.
    #[must_use]
    pub fn provisioned(&self, api_url: Option<String>, secret: Option<ObjectName>) -> Option<Self> {
        let default_namespace = NamespaceName::parse(self.annotation(NAMESPACE)?).ok()?;
        let mut next = self.clone();
        next.spec.kubernetes_credentials = Some(KubernetesCredentials {
            default_namespace,
            api_url,
            cluster_credentials_secret: secret,
            allow_insecure_skip_tls_verify: false,
        });
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// Groups, resources and verbs of each rule, sorted.
    fn granted(rules: Vec<PolicyRule>) -> Vec<(String, Vec<String>, Vec<String>)> {
        let rules = rules
            .into_iter()
            .map(|rule| (rule.api_groups.unwrap().join(","), rule.resources.unwrap(), rule.verbs));
        let mut rules: Vec<_> = rules.collect();
        rules.sort();
        rules
    }

    fn role(text: &str) -> Vec<PolicyRule> {
        let documents = text.split("\n---\n");
        let role = documents.into_iter().find(|document| document.contains("\nkind: Role\n")).unwrap();
        serde_saphyr::from_str::<Role>(role).unwrap().rules.unwrap()
    }

    #[test]
    fn the_account_of_a_target_may_what_the_service_may_in_a_lab_s_namespace() {
        let deploy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy");
        let read = |path: &str| std::fs::read_to_string(deploy.join(path)).unwrap();
        let of_service = role(&read("permissions/one-namespace.yaml"));
        let services = |rule: &PolicyRule| rule.resources.as_ref().unwrap() == &["services"];
        let expected = granted(of_service.into_iter().filter(|rule| !services(rule)).collect());
        assert_eq!(granted(rules()), expected, "deploy/permissions/one-namespace.yaml");
        let page = read("ENVIRONMENTS.md");
        let example = page.split("# gpu-account.yaml\n").nth(1).unwrap().split("```").next().unwrap();
        assert_eq!(granted(role(example)), expected, "deploy/ENVIRONMENTS.md");
    }
}

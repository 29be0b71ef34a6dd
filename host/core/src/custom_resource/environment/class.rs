//! `DeploymentTargetClass`: the way in which targets are made and reclaimed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NAMESPACE_PROVISIONER;
use crate::custom_resource::{Kind, Object};
use crate::names::{NamespaceName, ObjectName};

/// The way in which targets are made and reclaimed. Classes are cluster-scoped.
pub type Class = Object<ClassSpec, ()>;

/// What a class says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ClassSpec {
    /// The provisioner that makes targets of this class: `wasmspawner.io/namespace` for the one of the service. Claims of
    /// other provisioners are left to them.
    pub provisioner: String,
    /// What the provisioner has to know. The built-in one knows `namespacePrefix` (default: `env-`), `credentials`
    /// (`true` or `false`: whether a target gets an account of its own and a Secret with its token; default: `true`),
    /// `credentialsSecret` (a Secret in the service's own namespace with a kubeconfig of another cluster, in which the
    /// namespaces are made), `podSecurity` (`privileged`, `baseline` or `restricted`: what Kubernetes' Pod Security
    /// Admission enforces in the namespace; default: `baseline`), and `quota.NAME` (a limit of the namespace's quota, such as `quota.limits.cpu`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// What becomes of a target when its claim is deleted.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
    /// How many targets are kept ready that no claim has yet. The built-in provisioner makes them.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1000))]
    pub pool_size: u32,
}

/// What becomes of a target when its claim is deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ReclaimPolicy {
    /// The target is deleted, with its namespace and everything in it.
    Delete,
    /// The target and its namespace stay. The owner of the claim gets them again, and nobody else does until an
    /// administrator allows it.
    #[default]
    Retain,
}

impl Kind for Class {
    const KIND: &'static str = "DeploymentTargetClass";
    const PLURAL: &'static str = "deploymenttargetclasses";
    const NAMESPACED: bool = false;
}

/// The classes that exist without an object.
static BUILT_IN: LazyLock<[Class; 2]> =
    LazyLock::new(|| [built_in("delete", ReclaimPolicy::Delete), built_in("retain", ReclaimPolicy::Retain)]);

impl Class {
    /// Returns the built-in class `delete` or `retain`. It has the meaning of the value of the same name of
    /// `kubernetes.namespaces`, for the labs for which a policy chooses it. The built-in classes have no account,
    /// because the service itself works in the namespaces.
    pub fn built_in(name: &str) -> Option<&'static Self> {
        BUILT_IN.iter().find(|class| class.name() == name)
    }
}

fn built_in(name: &str, reclaim_policy: ReclaimPolicy) -> Class {
    Object {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        spec: ClassSpec {
            provisioner: NAMESPACE_PROVISIONER.to_owned(),
            parameters: BTreeMap::from([("credentials".to_owned(), "false".to_owned())]),
            reclaim_policy,
            pool_size: 0,
        },
        status: (),
    }
}

/// The parameters of the built-in provisioner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameters {
    /// The first part of the names of namespaces for which no name was requested.
    pub namespace_prefix: String,
    /// True if a target gets an account of its own and a Secret with its token.
    pub credentials: bool,
    /// The Secret with a kubeconfig of another cluster, in which the namespaces are created.
    pub credentials_secret: Option<ObjectName>,
    /// The Pod Security Standard that Pod Security Admission enforces in the namespace.
    pub pod_security: String,
    /// The limits of the namespace's quota.
    pub quota: BTreeMap<String, String>,
}

/// The reason why the parameters of a class cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("parameters.{key}: {value:?} {problem}")]
pub struct InvalidParameter {
    key: String,
    value: String,
    problem: String,
}

/// The largest length of the prefix of a namespace's name. With a number and a part of a uid after it, the name has at
/// most 63 characters.
const MAX_PREFIX_LENGTH: usize = 30;

impl Parameters {
    /// Reads the parameters of a class.
    pub fn parse(parameters: &BTreeMap<String, String>) -> Result<Self, InvalidParameter> {
        let mut parsed = Self {
            namespace_prefix: "env-".to_owned(),
            credentials: true,
            credentials_secret: None,
            pod_security: "baseline".to_owned(),
            quota: BTreeMap::new(),
        };
        for (key, value) in parameters {
            let refused = |problem: &str| {
                Err(InvalidParameter { key: key.clone(), value: value.clone(), problem: problem.to_owned() })
            };
            match (key.as_str(), key.strip_prefix("quota.")) {
                ("namespacePrefix", _) if value.len() > MAX_PREFIX_LENGTH => {
                    return refused("is longer than 30 characters");
                }
                ("namespacePrefix", _) if NamespaceName::parse(format!("{value}1")).is_err() => {
                    return refused("is not the beginning of a namespace's name: a-z, 0-9 and -");
                }
                ("namespacePrefix", _) => parsed.namespace_prefix.clone_from(value),
                ("credentials", _) => match value.parse() {
                    Ok(credentials) => parsed.credentials = credentials,
                    Err(_) => return refused("is neither `true` nor `false`"),
                },
                ("credentialsSecret", _) => match ObjectName::parse(value.as_str()) {
                    Ok(secret) => parsed.credentials_secret = Some(secret),
                    Err(_) => return refused("is not the name of a Secret"),
                },
                ("podSecurity", _) => match value.as_str() {
                    "privileged" | "baseline" | "restricted" => parsed.pod_security.clone_from(value),
                    _ => return refused("is neither `privileged` nor `baseline` nor `restricted`"),
                },
                (_, Some(resource)) if value.parse::<crate::users::quota::Quantity>().is_ok() => {
                    parsed.quota.insert(resource.to_owned(), value.clone());
                }
                (_, Some(_)) => return refused("is no quantity, such as 4 or 16Gi"),
                _ => {
                    return refused(
                        "is not known; the parameters are namespacePrefix, credentials, credentialsSecret, podSecurity \
                         and quota.NAME",
                    );
                }
            }
        }
        Ok(parsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(key: &str, value: &str) -> Result<Parameters, String> {
        let parameters = BTreeMap::from([(key.to_owned(), value.to_owned())]);
        Parameters::parse(&parameters).map_err(|problem| problem.to_string())
    }

    #[test]
    fn the_parameters_of_the_built_in_provisioner() {
        assert_eq!(parse("namespacePrefix", "gpu-").unwrap().namespace_prefix, "gpu-");
        assert!(!parse("credentials", "false").unwrap().credentials);
        assert_eq!(parse("quota.limits.cpu", "4").unwrap().quota["limits.cpu"], "4");
        for (key, value, problem) in [
            ("namespacePrefix", "GPU", "is not the beginning"),
            ("namespacePrefix", "a-prefix-that-is-far-longer-than-thirty", "longer than 30"),
            ("credentials", "no", "neither `true` nor `false`"),
            ("credentialsSecret", "A B", "not the name of a Secret"),
            ("podSecurity", "open", "neither `privileged`"),
            ("quota.pods", "many", "no quantity"),
            ("colour", "red", "is not known"),
        ] {
            let refused = parse(key, value).unwrap_err();
            assert!(refused.starts_with(&format!("parameters.{key}: \"{value}\" ")), "{refused}");
            assert!(refused.contains(problem), "{refused}");
        }
    }
}

//! The place of a spawn in the cluster.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::config::lab::{CertificateIssuer, Entrance};
use crate::custom_resource::environment::{ClusterRef, NamespaceFate};
use crate::names::lab::JobId;
use crate::names::{LabNames, NamespaceName, ObjectName};
use crate::workload::Workload;

/// The place of a spawn in the cluster. It is recorded when the spawn is accepted, so that a later change of a template
/// does not move a lab.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "RecordedPlace", into = "RecordedPlace")]
pub struct Place {
    /// The namespace of all objects of the spawn.
    pub namespace: NamespaceName,
    /// The name of the pod; for a lab in the pods of a workload, that of the lab's other objects.
    pub pod: ObjectName,
    /// Where the namespace comes from.
    pub kind: PlaceKind,
    /// How JupyterHub reaches the lab.
    pub entrance: Entrance,
}

/// Where the namespace of a spawn comes from, and with that the cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PlaceKind {
    /// The configuration names it, in the service's own cluster: one for each lab, one that stays, or one for all.
    Configured,
    /// A claim of an environment has brought it, or will.
    Claimed {
        /// The claim.
        claim: PlaceClaim,
        /// How the cluster is reached; `None` for the service's own.
        cluster: Option<ClusterRef>,
    },
    /// The spawn is the child of a lab in this other cluster, and in the lab's namespace.
    BesideLab(ClusterRef),
    /// The lab is in the pods of a workload, in the workload's namespace.
    InWorkload(PlaceWorkload),
}

/// The workload in whose pods a lab is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PlaceWorkload {
    /// Its kind, namespace and name.
    #[serde(flatten)]
    pub workload: Workload,
    /// Its uid, which differs from that of another workload of the same name; absent until the lab is decided. Before that,
    /// nothing of the lab is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<String>,
}

/// The claim through which a lab has its namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlaceClaim {
    /// The claim's name. That of a lab's own claim is the name of the lab's record and a part of the operation's id, so that a
    /// claim that does not go does not hinder the next lab.
    pub name: ObjectName,
    /// True if the claim is the lab's own, and deleted with the lab.
    pub own: bool,
    /// What becomes of the namespace when the lab is stopped.
    pub fate: NamespaceFate,
}

/// The error for a place whose parts exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ImpossiblePlace {
    /// A workload is in the service's own cluster, and nothing else brings its namespace.
    #[error("a lab in a workload has neither a claim nor a cluster nor a Service")]
    Workload,
    /// A Service is in the service's own cluster.
    #[error("a lab in another cluster has no Service here")]
    ServiceElsewhere,
    /// Without a Service, nothing has the certificate's name.
    #[error("only a lab with a Service has a certificate")]
    CertificateAlone,
}

/// The place of a spawn in the cluster. It is recorded when the spawn is accepted, so that a later change of a template
/// does not move a lab.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Place")]
struct RecordedPlace {
    /// The namespace of all objects of the spawn.
    namespace: NamespaceName,
    /// The name of the pod; for a lab in the pods of a workload, that of the lab's other objects.
    pod: ObjectName,
    /// True if the lab has a Service in the service's own cluster.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    has_service: bool,
    /// Who issues the lab's certificate; absent if the lab is reached without TLS. Only a lab with a Service has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    certificate: Option<CertificateIssuer>,
    /// How the cluster is reached; absent for the service's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterRef>,
    /// The claim of the lab; absent if the namespace was made for the lab itself, or exists without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claim: Option<PlaceClaim>,
    /// The workload in whose pods the lab is; absent for a lab with a pod of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workload: Option<PlaceWorkload>,
}

impl TryFrom<RecordedPlace> for Place {
    type Error = ImpossiblePlace;

    fn try_from(recorded: RecordedPlace) -> Result<Self, ImpossiblePlace> {
        let RecordedPlace { namespace, pod, has_service, certificate, cluster, claim, workload } = recorded;
        let entrance = match (has_service, certificate) {
            (false, None) => Entrance::Pod,
            (true, None) => Entrance::Service,
            (true, Some(issuer)) => Entrance::Tls(issuer),
            (false, Some(_)) => return Err(ImpossiblePlace::CertificateAlone),
        };
        if entrance != Entrance::Pod && cluster.is_some() {
            return Err(ImpossiblePlace::ServiceElsewhere);
        }
        let kind = match (workload, claim, cluster) {
            (None, None, None) => PlaceKind::Configured,
            (None, None, Some(cluster)) => PlaceKind::BesideLab(cluster),
            (None, Some(claim), cluster) => PlaceKind::Claimed { claim, cluster },
            (Some(workload), None, None) if entrance == Entrance::Pod => PlaceKind::InWorkload(workload),
            (Some(_), ..) => return Err(ImpossiblePlace::Workload),
        };
        Ok(Self { namespace, pod, kind, entrance })
    }
}

impl From<Place> for RecordedPlace {
    fn from(place: Place) -> Self {
        let Place { namespace, pod, kind, entrance } = place;
        let (claim, cluster, workload) = match kind {
            PlaceKind::Configured => (None, None, None),
            PlaceKind::Claimed { claim, cluster } => (Some(claim), cluster, None),
            PlaceKind::BesideLab(cluster) => (None, Some(cluster), None),
            PlaceKind::InWorkload(workload) => (None, None, Some(workload)),
        };
        let has_service = entrance.has_service();
        Self { namespace, pod, has_service, certificate: entrance.certificate(), cluster, claim, workload }
    }
}

impl JsonSchema for Place {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        RecordedPlace::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        RecordedPlace::json_schema(generator)
    }
}

impl PlaceClaim {
    /// Creates the claim that a lab with this record may get in this operation. Until the claim has a target, nothing
    /// but the claim has to be deleted.
    pub fn of_lab(record: &ObjectName, operation: JobId) -> Self {
        let id = operation.to_string();
        let part = id.get(id.len().saturating_sub(8)..).unwrap_or_default();
        // A record's name is short enough to append the rest.
        let name = ObjectName::parse(format!("{record}-{part}")).unwrap_or_else(|_| record.clone());
        Self { name, own: true, fate: NamespaceFate::Deleted }
    }
}

impl PlaceKind {
    /// How the cluster is reached; `None` for the service's own.
    pub fn cluster(&self) -> Option<&ClusterRef> {
        match self {
            Self::Claimed { cluster, .. } => cluster.as_ref(),
            Self::BesideLab(cluster) => Some(cluster),
            Self::Configured | Self::InWorkload(_) => None,
        }
    }

    /// The claim of the lab.
    pub fn claim(&self) -> Option<&PlaceClaim> {
        match self {
            Self::Claimed { claim, .. } => Some(claim),
            Self::Configured | Self::BesideLab(_) | Self::InWorkload(_) => None,
        }
    }

    /// What becomes of the namespace of the claim.
    pub fn fate(&self) -> Option<NamespaceFate> {
        self.claim().map(|claim| claim.fate)
    }

    /// The claim of the lab, if it is the lab's own.
    pub fn own_claim(&self) -> Option<&PlaceClaim> {
        self.claim().filter(|claim| claim.own)
    }

    /// The workload in whose pods the lab is.
    pub fn workload(&self) -> Option<&PlaceWorkload> {
        match self {
            Self::InWorkload(workload) => Some(workload),
            Self::Configured | Self::Claimed { .. } | Self::BesideLab(_) => None,
        }
    }
}

impl Place {
    /// Returns the place of a lab with these names, in the namespace that the configuration gives.
    pub fn from_names(names: &LabNames) -> Self {
        Self {
            namespace: names.namespace.clone(),
            pod: names.pod.clone(),
            kind: PlaceKind::Configured,
            entrance: Entrance::Pod,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn read(parts: &Value) -> Result<Value, String> {
        let mut place = json!({"namespace": "nublado-ada", "pod": "jupyter-ada"});
        place.as_object_mut().unwrap().extend(parts.as_object().unwrap().clone());
        let parsed: Place = serde_json::from_value(place.clone()).map_err(|error| error.to_string())?;
        assert_eq!(serde_json::to_value(&parsed).unwrap(), place, "what was read is what is written");
        Ok(place)
    }

    #[test]
    fn places_that_can_be_are_read_and_written_as_they_were() {
        let claim = json!({"name": "ada-1", "own": true, "fate": "Deleted"});
        let workload = json!({"kind": "Deployment", "namespace": "shop", "name": "web", "uid": "7"});
        let cluster = json!({"secret": "gpu-cluster", "insecure": false});
        for parts in [
            json!({}),
            json!({"hasService": true}),
            json!({"hasService": true, "certificate": "service"}),
            json!({"claim": claim}),
            json!({"claim": claim, "hasService": true}),
            json!({"claim": claim, "cluster": cluster}),
            json!({"cluster": cluster}),
            json!({"workload": workload}),
        ] {
            read(&parts).unwrap_or_else(|error| panic!("{parts}: {error}"));
        }
        for (parts, why) in [
            (json!({"certificate": "service"}), "only a lab with a Service"),
            (json!({"hasService": true, "cluster": cluster}), "in another cluster"),
            (json!({"workload": workload, "claim": claim}), "in a workload"),
            (json!({"workload": workload, "cluster": cluster}), "in a workload"),
            (json!({"workload": workload, "hasService": true}), "in a workload"),
        ] {
            assert!(read(&parts).unwrap_err().contains(why), "{parts}");
        }
    }
}

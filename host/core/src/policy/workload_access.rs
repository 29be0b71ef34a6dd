//! The question to policies about labs in workloads, and their answer.

use k8s_openapi::api::core::v1::{PodTemplateSpec, Volume};
use serde::{Deserialize, Serialize};

use super::denial::Denial;
use super::{Options, User};
use crate::workload::{LabMark, Workload};

/// The question that the hook `inject` answers: may the user have a lab in the pods of this workload, and which parts
/// of the pods does the lab see?
#[derive(Clone, Debug, PartialEq)]
pub struct InjectRequest {
    /// The user who wants the lab.
    pub user: User,
    /// Name of the user's server.
    pub server: String,
    /// The parsed options.
    pub options: Options,
    /// The workload.
    pub workload: SeenWorkload,
}

/// A workload as policies see it, without the values of its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenWorkload {
    /// Kind, namespace and name.
    pub workload: Workload,
    /// The workload's containers, without those of labs.
    pub containers: Vec<SeenContainer>,
    /// The workload's volumes, without those of labs.
    pub volumes: Vec<SeenVolume>,
}

/// A container of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenContainer {
    /// The container's name.
    pub name: String,
    /// The container's image.
    #[serde(default)]
    pub image: String,
}

/// A volume of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenVolume {
    /// The volume's name.
    pub name: String,
    /// The kind of the volume's source, as Kubernetes writes it: `configMap`, `secret`, `persistentVolumeClaim`.
    pub source: String,
}

/// The parts of its workload's pods that a lab sees. By default it sees nothing but the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadAccess {
    /// The volumes of the workload that the lab mounts.
    pub volumes: Vec<VolumeAccess>,
    /// The container whose environment the lab also gets. The lab's own variables win.
    pub environment_of: Option<String>,
}

/// A volume of the workload that the lab mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeAccess {
    /// The name of the volume in the workload's pod template.
    pub volume: String,
    /// The absolute path at which the lab mounts the volume.
    pub path: String,
    /// The part of the volume that the lab mounts; a relative path.
    #[serde(default)]
    pub sub_path: Option<String>,
    /// Mounted read only.
    #[serde(default)]
    pub read_only: bool,
}

/// The answer of the hook `inject`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum InjectVerdict {
    /// The user may have the lab, which sees these parts of the workload.
    Allow(WorkloadAccess),
    /// The user may not have the lab.
    Deny(Denial),
}

impl SeenWorkload {
    /// Returns the view that policies have of a workload with this pod template.
    pub fn from_template(workload: &Workload, template: &PodTemplateSpec) -> Self {
        let spec = template.spec.as_ref();
        let of_site = |name: &str| !LabMark::is_of_a_lab(name);
        let containers = spec.map(|spec| spec.containers.as_slice()).unwrap_or_default();
        let volumes = spec.and_then(|spec| spec.volumes.as_deref()).unwrap_or_default();
        Self {
            workload: workload.clone(),
            containers: containers
                .iter()
                .filter(|container| of_site(&container.name))
                .map(|container| SeenContainer {
                    name: container.name.clone(),
                    image: container.image.clone().unwrap_or_default(),
                })
                .collect(),
            volumes: volumes
                .iter()
                .filter(|volume| of_site(&volume.name))
                .map(|volume| SeenVolume { name: volume.name.clone(), source: source(volume) })
                .collect(),
        }
    }
}

/// The kind of a volume's source.
fn source(volume: &Volume) -> String {
    kinds(volume).into_iter().next().unwrap_or_else(|| "emptyDir".to_owned())
}

/// Returns the kinds of a volume, or of a source of a projected volume, as Kubernetes writes them. They are the keys
/// other than the name, of which Kubernetes allows one.
pub(super) fn kinds(source: &impl Serialize) -> Vec<String> {
    let written = serde_json::to_value(source).unwrap_or_default();
    let keys = written.as_object().into_iter().flat_map(|fields| fields.keys().cloned());
    keys.filter(|key| key != "name").collect()
}

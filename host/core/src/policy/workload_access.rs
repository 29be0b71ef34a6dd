//! What policies decide about labs in workloads.

use k8s_openapi::api::core::v1::{PodTemplateSpec, Volume};
use serde::{Deserialize, Serialize};

use super::denial::Denial;
use super::{Options, User};
use crate::workload::{LabMark, Workload};

/// The question that the hook `inject` answers: whether the user may have a lab in the pods of this workload, and what of
/// them the lab sees.
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

/// A workload as policies see it. Values of its environment are not among it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenWorkload {
    /// Kind, namespace and name.
    pub workload: Workload,
    /// Its containers, without those of labs.
    pub containers: Vec<SeenContainer>,
    /// Its volumes, without those of labs.
    pub volumes: Vec<SeenVolume>,
}

/// A container of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenContainer {
    /// Its name.
    pub name: String,
    /// Its image.
    #[serde(default)]
    pub image: String,
}

/// A volume of a workload.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeenVolume {
    /// Its name.
    pub name: String,
    /// The kind of its source, as Kubernetes writes it: `configMap`, `secret`, `persistentVolumeClaim`.
    pub source: String,
}

/// What a lab sees of the pods of its workload. Without it, nothing but the network.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct WorkloadAccess {
    /// Volumes of the workload.
    pub volumes: Vec<VolumeAccess>,
    /// The container whose environment the lab has, too. The lab's own variables win.
    pub environment_of: Option<String>,
}

/// A volume of the workload that the lab mounts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VolumeAccess {
    /// The name of the volume in the workload's pod template.
    pub volume: String,
    /// Where the lab has it: an absolute path.
    pub path: String,
    /// The part of the volume that the lab has; a relative path.
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
    /// The user may have the lab, and it sees this.
    Allow(WorkloadAccess),
    /// The user may not.
    Deny(Denial),
}

impl SeenWorkload {
    /// What policies see of a workload with this pod template.
    pub fn of(workload: &Workload, template: &PodTemplateSpec) -> Self {
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

/// The kinds of a volume, or of a source of a projected volume, as Kubernetes writes them: the keys beside its name, of which
/// Kubernetes allows one.
pub(super) fn kinds(source: &impl Serialize) -> Vec<String> {
    let written = serde_json::to_value(source).unwrap_or_default();
    let keys = written.as_object().into_iter().flat_map(|fields| fields.keys().cloned());
    keys.filter(|key| key != "name").collect()
}

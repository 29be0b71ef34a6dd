//! The objects of a kernel: a pod like that of its lab, which runs the launcher in place of the lab's server.

use k8s_openapi::api::core::v1::Pod;

use super::child::{self, ParentPod, Program, ProgramFiles};
use super::objects::LabObjects;
use super::{claim, env_config_map, network_policy, nss_config_map, pull_secret};
use crate::children::kernel::{Launch, MOUNT_PATH, PORTS};
use crate::names::labels::KERNEL;
use crate::policy::ValidatedSpawn;

/// The prefix of the launcher's files in the kernel's Secret.
const KEY_PREFIX: &str = "kernel.";

/// Builds the objects of a kernel. `spawn` contains the decisions of the policies for the kernel.
///
/// The kernel has the image, the volumes, the resources, the user and the security settings that a lab of these options
/// would have, and no service account, quota or namespace of its own.
pub fn build_kernel(spawn: &ValidatedSpawn, launch: &Launch, parent: &ParentPod) -> LabObjects {
    let files = launch.files();
    let names = files.keys().copied().collect();
    LabObjects {
        namespace: None,
        routes: Vec::new(),
        service_account: None,
        env: env_config_map::build(spawn),
        nss: nss_config_map::build(spawn),
        pod: kernel_pod(spawn, launch, parent, names),
        secret: child::secret(spawn, ProgramFiles { prefix: KEY_PREFIX, files }),
        pull_secret: pull_secret::build(spawn),
        claims: claim::build(spawn),
        resource_quota: None,
        limit_range: None,
        network_policy: network_policy::of_child(spawn, &PORTS.all()),
    }
}

fn kernel_pod(spawn: &ValidatedSpawn, launch: &Launch, parent: &ParentPod, files: Vec<&'static str>) -> Pod {
    let program = Program {
        component: KERNEL,
        container: "kernel",
        volume: "wasmspawner-kernel",
        path: MOUNT_PATH,
        command: "launcher.py",
        ports: &PORTS.all(),
        files: (KEY_PREFIX, files),
        beside: &parent.spawn,
    };
    let mut pod = child::pod(spawn, &program);
    pod.metadata.owner_references = Some(vec![parent.as_owner()]);
    if launch.kernel.working_dir.is_some() {
        for container in pod.spec.iter_mut().flat_map(|spec| &mut spec.containers) {
            container.working_dir.clone_from(&launch.kernel.working_dir);
        }
    }
    pod
}

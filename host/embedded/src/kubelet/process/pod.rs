//! The process side of one pod: its volumes, and the preparation, start and adoption of its containers.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerStatus, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::directory::{PodDirectory, StateDirectory};
use super::group::kill_marked;
use super::launch::Launch;
use super::logs::message_from_log;
use super::record::ProcessRecord;
use super::run::{ProcessRun, exit_code};
use crate::kubelet::ProcessOptions;
use crate::kubelet::env::{PodContext, References, resolve};
use crate::kubelet::exit::Exit;
use crate::kubelet::image::{self, ImageState};
use crate::kubelet::status::{self, end_of, running_since, spec};
use crate::kubelet::volume::{self, create_private};

/// One pod of processes.
#[derive(Debug)]
pub(crate) struct PodProcess {
    options: Arc<ProcessOptions>,
    state: StateDirectory,
    directory: PodDirectory,
    /// The directory of each volume, once the volumes are mounted.
    volumes: OnceLock<BTreeMap<String, PathBuf>>,
}

impl PodProcess {
    pub(crate) fn new(options: Arc<ProcessOptions>, state: StateDirectory, uid: &str) -> Self {
        let directory = state.pod(uid);
        Self { options, state, directory, volumes: OnceLock::new() }
    }

    /// Returns the field of a pod's spec that is not supported, if there is one. Labs need none of these fields.
    pub(crate) fn unsupported(pod: &Pod) -> Option<String> {
        let spec = spec(pod);
        let containers = spec.init_containers.iter().flatten().chain(&spec.containers);
        let of_containers = containers.flat_map(|container| {
            let mut mounts = container.volume_mounts.iter().flatten();
            let mut probes = container.startup_probe.iter().chain(&container.readiness_probe);
            let strange = probes.any(|probe| probe.http_get.is_none() && probe.tcp_socket.is_none());
            [
                ("livenessProbe", container.liveness_probe.is_some()),
                ("a probe other than httpGet or tcpSocket", strange),
                ("lifecycle", container.lifecycle.is_some()),
                ("restartPolicy", container.restart_policy.is_some()),
                ("volumeMounts[].subPathExpr", mounts.any(|mount| mount.sub_path_expr.is_some())),
            ]
            .map(|(field, used)| (format!("container {}: {field}", container.name), used))
        });
        let of_pod = ("activeDeadlineSeconds".to_owned(), spec.active_deadline_seconds.is_some());
        let (field, _) = of_containers.chain([of_pod]).find(|(_, used)| *used)?;
        Some(format!("the one-machine cluster does not support this: {field}"))
    }

    /// Returns the end of the log of a container's run.
    pub(crate) fn end_of_log(&self, container: &str, restarts: i32) -> Option<String> {
        // Logs are cut before they become too large to be read at once.
        let log = fs::read(self.directory.container(container).log(restarts)).ok()?;
        Some(message_from_log(&log))
    }

    /// Brings the status of a container up to date. Returns its process, if it still runs.
    pub(crate) fn adopt(&self, uid: &str, known: &mut ContainerStatus, now: Timestamp) -> Option<ProcessRun> {
        let directory = self.directory.container(&known.name);
        let was_running = running_since(known).cloned();
        if !directory.path().exists() && was_running.is_none() {
            return None;
        }
        let record = ProcessRecord::read(&directory);
        let adopted = record.as_ref().and_then(|record| ProcessRun::adopted(record, directory.clone()));
        if let (Some(run), Some(record)) = (adopted, &record) {
            known.restart_count = record.restarts;
            known.state = Some(status::running(record.started_at));
            return Some(run);
        }
        // A process that was started just before this program died may have no record.
        kill_marked(&format!("{uid}/{}/", known.name));
        let id = known.container_id.clone();
        let end = match record {
            Some(record) if record.restarts == known.restart_count && end_of(known).is_some() => {
                return None;
            }
            Some(record) => {
                known.restart_count = record.restarts;
                let written = fs::metadata(directory.exit()).and_then(|metadata| metadata.modified()).ok();
                let finished = written.and_then(|time| Timestamp::try_from(time).ok()).unwrap_or(now);
                let exit = Exit::of_code(exit_code(&directory, None));
                exit.terminated(Some(Time(record.started_at)), finished, id)
            }
            None => Exit::unknown().terminated(Some(was_running?), now, id),
        };
        known.state = Some(status::terminated(end));
        known.ready = false;
        known.started = Some(false);
        None
    }

    pub(crate) fn image(&self, container: &Container) -> ImageState {
        match image::find(&self.options.images, container) {
            Ok(_) => ImageState::Present,
            Err(message) => ImageState::Unavailable { after: std::time::Duration::ZERO, message },
        }
    }

    /// Creates all volumes. The error is the message of a `FailedMount` event.
    pub(crate) async fn mount(&self, context: &PodContext<'_>) -> Result<(), String> {
        let references = References::read(context).await?;
        let namespace = context.pod.metadata.namespace.as_deref().unwrap_or("default");
        let claims = self.state.claims().join(namespace);
        let mut volumes = BTreeMap::new();
        for volume in spec(context.pod).volumes.iter().flatten() {
            let name = &volume.name;
            let path = volume::make(volume, self.directory.volume(name), &claims, &references)
                .map_err(|error| format!("MountVolume.SetUp failed for volume {name:?} : {error}"))?;
            volumes.insert(name.clone(), path);
        }
        create_private(&self.directory.home()).map_err(|error| format!("home directory: {error}"))?;
        let _ = self.volumes.set(volumes);
        Ok(())
    }

    /// Prepares the parameters of the container's process. The error is the message of a `CreateContainerConfigError`.
    pub(crate) async fn prepare(
        &self,
        context: &PodContext<'_>,
        container: &Container,
    ) -> Result<Launch, String> {
        let references = References::read(context).await?;
        let env = resolve(context, container, &references)?;
        let mapping = image::find(&self.options.images, container)?;
        let none = BTreeMap::new();
        let volumes = self.volumes.get().unwrap_or(&none);
        Launch::prepare(mapping, context, container, env, &self.directory.home(), volumes)
    }

    pub(crate) fn start(
        &self,
        container: &str,
        launch: &Launch,
        mark: &str,
        restarts: i32,
        now: Timestamp,
    ) -> Result<ProcessRun, Exit> {
        let directory = self.directory.container(container);
        for path in launch.mounted.iter().filter(|path| !path.exists()) {
            create_private(path)
                .map_err(|error| Exit::not_started(format!("{}: {error}", path.display())))?;
        }
        launch.start(directory, mark, restarts, now).map_err(Exit::not_started)
    }
}

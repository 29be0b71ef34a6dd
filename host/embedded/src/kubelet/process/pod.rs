//! The process side of one pod: its volumes, and how its containers are prepared, started and found again.

use std::{
    collections::{BTreeMap, HashMap},
    fs, io,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;

use super::{
    directory::{PodDirectory, StateDirectory, create_private, give, let_pass},
    launch::{Launch, PodContext, prepare, start},
    leftovers::{Adopted, adopt},
    run::ProcessRun,
};
use crate::kubelet::{
    ProcessOptions,
    env::{PodFacts, References, resolve},
    image,
    node::HOST_IP,
    pod::Worker,
    probe::Target,
    runtime::{Adoption, Exit, ImageState, Run},
    status::{ContainerRecord, ContainerState, Termination},
    volume::{Materialisation, MountError, PlannedFile, plan, write_files},
};

/// One pod of processes.
#[derive(Debug)]
pub(crate) struct PodProcess {
    options: Arc<ProcessOptions>,
    state: StateDirectory,
    directory: PodDirectory,
    volumes: OnceLock<BTreeMap<String, PathBuf>>,
    /// What a container was last started with, for probes and hooks that run commands.
    launches: Mutex<HashMap<String, Target>>,
}

impl PodProcess {
    pub(crate) fn new(options: Arc<ProcessOptions>, state: StateDirectory, uid: &str) -> Self {
        let directory = state.pod(uid);
        Self { options, state, directory, volumes: OnceLock::new(), launches: Mutex::default() }
    }

    /// What became of a container that is `known` by the pod's status.
    pub(crate) fn adopt(&self, uid: &str, known: &ContainerRecord, now: Timestamp) -> Adoption {
        let directory = self.directory.container(&known.name);
        let was_running = matches!(known.state, ContainerState::Running { .. });
        if !directory.path().exists() && !was_running {
            return Adoption::Fresh;
        }
        match adopt(&directory, &format!("{uid}/{}/", known.name), now) {
            Adopted::Running { run, since, restarts } => {
                Adoption::Running { run: Run::Process(run), since, restarts }
            }
            Adopted::Exited { restarts, .. }
                if restarts == known.restarts && matches!(known.state, ContainerState::Terminated(_)) =>
            {
                Adoption::Fresh
            }
            Adopted::Exited { code, started_at, finished_at, restarts } => {
                let exit = Exit::of_code(code);
                let end = Termination {
                    exit_code: code,
                    reason: exit.reason.to_owned(),
                    message: String::new(),
                    started_at: Some(started_at),
                    finished_at,
                    container_id: known.container_id.clone(),
                };
                Adoption::Ended { end, restarts }
            }
            Adopted::Unknown if was_running => {
                Adoption::Ended { end: lost(known, now), restarts: known.restarts }
            }
            Adopted::Unknown => Adoption::Fresh,
        }
    }

    pub(crate) fn image(&self, container: &Container) -> ImageState {
        let image = container.image.as_deref().unwrap_or_default();
        if image::find(&self.options.images, image).is_some() {
            return ImageState::Present;
        }
        ImageState::Unavailable { after: std::time::Duration::ZERO, message: image::unmapped(image) }
    }

    /// Creates every volume. The error is a `FailedMount` event's message.
    pub(crate) async fn mount(&self, worker: &Worker) -> Result<(), String> {
        let references = references(worker).await?;
        let mut planned = Vec::new();
        let failed = |volume: &str, error: MountError| {
            format!("MountVolume.SetUp failed for volume {volume:?} : {error}")
        };
        for volume in worker.spec().volumes.iter().flatten() {
            let decided = plan(volume, &references);
            planned.push((volume.name.clone(), decided.map_err(|error| failed(&volume.name, error))?));
        }
        let mut volumes = BTreeMap::new();
        for (name, decided) in planned {
            let path =
                self.materialise(worker.namespace(), &name, decided).map_err(|error| failed(&name, error))?;
            volumes.insert(name, path);
        }
        create_private(&self.directory.home()).map_err(|error| format!("home directory: {error}"))?;
        // Mounted once: the second caller's directories are the same.
        let _ = self.volumes.set(volumes);
        Ok(())
    }

    fn materialise(
        &self,
        namespace: &str,
        name: &str,
        decided: Materialisation,
    ) -> Result<PathBuf, MountError> {
        let own = self.directory.volume(name);
        match decided {
            Materialisation::Empty => create(&own),
            Materialisation::Files(files) => replace(&own, &files).map_err(|error| io_error(&own, &error)),
            Materialisation::Claim(claim) => create(&self.state.claim(namespace, &claim)),
            Materialisation::Host { path, create: true } => create(&path),
            Materialisation::Host { path, create: false } => {
                // Files may be mounted as well; what is not there cannot be.
                if path.exists() { Ok(path) } else { Err(MountError::NotADirectory { path: text(&path) }) }
            }
        }
    }

    /// Everything to start the container with. The error is a `CreateContainerConfigError`'s message.
    pub(crate) async fn prepare(&self, worker: &Worker, container: &Container) -> Result<Launch, String> {
        let references = references(worker).await?;
        let facts = facts(worker);
        let env = resolve(&worker.pod, container, &references, &facts).map_err(|error| error.to_string())?;
        let image = container.image.as_deref().unwrap_or_default();
        let mapping = image::find(&self.options.images, image).ok_or_else(|| image::unmapped(image))?;
        let none = BTreeMap::new();
        let around = PodContext {
            pod: &worker.pod,
            pod_ip: &facts.pod_ip,
            home: &self.directory.home(),
            volumes: self.volumes.get().unwrap_or(&none),
        };
        let inherited = |name: &str| std::env::var(name).ok();
        let launch = prepare(&self.options, mapping, container, env, around, inherited);
        let launch = launch.map_err(|error| error.to_string())?;
        self.remember(worker, &container.name, &launch);
        Ok(launch)
    }

    pub(crate) fn start(
        &self,
        uid: &str,
        container: &str,
        launch: &Launch,
        restarts: u32,
        now: Timestamp,
    ) -> Result<ProcessRun, Exit> {
        let mark = format!("{uid}/{container}/{restarts}/");
        let directory = self.directory.container(container);
        for path in launch.mounted.iter().filter(|path| !path.exists()) {
            create_private(path)
                .map_err(|error| Exit::not_started(format!("{}: {error}", path.display())))?;
        }
        let given = launch.user.map_or(Ok(()), |user| self.give_all(directory.path(), launch, user));
        given.map_err(|error| {
            Exit::not_started(format!("directories could not be given to runAsUser: {error}"))
        })?;
        start(launch, directory, &mark, restarts, now).map_err(Exit::not_started)
    }

    /// What probes and hooks of the container are asked with.
    pub(crate) async fn target(&self, worker: &Worker, container: &Container) -> Target {
        if let Some(target) = self.launches().get(&container.name) {
            return target.clone();
        }
        // An adopted process.
        if self.prepare(worker, container).await.is_err() {
            tracing::warn!(
                container = container.name,
                "probe commands run without the container's environment"
            );
        }
        let known = self.launches().get(&container.name).cloned();
        known.unwrap_or_else(|| Target {
            pod_ip: pod_ip(worker),
            env: BTreeMap::new(),
            working_dir: "/".into(),
        })
    }

    fn remember(&self, worker: &Worker, container: &str, launch: &Launch) {
        let target = Target {
            pod_ip: pod_ip(worker),
            env: launch.env.clone(),
            working_dir: launch.working_dir.clone(),
        };
        self.launches().insert(container.to_owned(), target);
    }

    fn launches(&self) -> std::sync::MutexGuard<'_, HashMap<String, Target>> {
        self.launches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the pod's directories to the user it runs as; other users' stay out of reach.
    fn give_all(&self, container: &Path, launch: &Launch, user: (u32, u32)) -> io::Result<()> {
        create_private(container)?;
        give(self.directory.path(), user)?;
        for path in self.volumes.get().into_iter().flat_map(BTreeMap::values) {
            if path.starts_with(self.state.claims()) {
                std::os::unix::fs::lchown(path, Some(user.0), Some(user.1))?;
                path.parent().map_or(Ok(()), let_pass)?;
            }
        }
        for passage in [self.state.path(), &self.state.pods(), &self.state.claims()] {
            if passage.exists() {
                let_pass(passage)?;
            }
        }
        tracing::debug!(program = launch.command.first(), uid = user.0, "a container runs as another user");
        Ok(())
    }
}

/// A container that ran, but of which this machine knows nothing.
fn lost(known: &ContainerRecord, now: Timestamp) -> Termination {
    let started_at = match known.state {
        ContainerState::Running { since } => Some(since),
        _ => None,
    };
    Termination {
        exit_code: 137,
        reason: "ContainerStatusUnknown".to_owned(),
        message: "The container could not be located when the kubelet was restarted".to_owned(),
        started_at,
        finished_at: now,
        container_id: known.container_id.clone(),
    }
}

async fn references(worker: &Worker) -> Result<References, String> {
    let read = References::read(&worker.node.client, worker.namespace()).await;
    read.map_err(|error| format!("references could not be read: {error}"))
}

fn facts(worker: &Worker) -> PodFacts {
    PodFacts {
        pod_ip: pod_ip(worker).to_string(),
        host_ip: HOST_IP.to_string(),
        node_name: worker.node.name.clone(),
        node_cpu_milli: worker.node.capacity.cpu_milli,
        node_memory: worker.node.capacity.memory,
    }
}

fn pod_ip(worker: &Worker) -> std::net::IpAddr {
    let known = worker.state.read(|record| record.pod_ip.as_deref().and_then(|ip| ip.parse().ok()));
    known.unwrap_or(HOST_IP)
}

fn create(path: &Path) -> Result<PathBuf, MountError> {
    create_private(path).map_err(|error| io_error(path, &error))?;
    Ok(path.to_owned())
}

/// Writes the files beside what is there, then swaps: a process never sees half of them.
fn replace(path: &Path, files: &[PlannedFile]) -> io::Result<PathBuf> {
    let next = path.with_extension("next");
    write_files(&next, files)?;
    match fs::remove_dir_all(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    fs::rename(&next, path)?;
    Ok(path.to_owned())
}

fn io_error(path: &Path, error: &io::Error) -> MountError {
    MountError::Io { path: text(path), message: error.to_string() }
}

fn text(path: &Path) -> String {
    path.to_string_lossy().into_owned()
}

//! Prepares and starts a process.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, Pod};
use rustix::process::Pid;
use tokio::process::Command;

use super::directory::{ContainerDirectory, create_private};
use super::group::MARK;
use super::record::{ProcessRecord, start_ticks};
use super::run::ProcessRun;
use crate::kubelet::ProcessOptions;
use crate::kubelet::env::PodContext;
use crate::kubelet::image::{self, ImageCommand};
use crate::kubelet::mounts::Mounts;
use crate::kubelet::probe::first_port;
use crate::kubelet::volume::MountError;

/// Runs the program as a child, so that its exit code can be written down for a later run that adopts the process: a signal to
/// the group must end the program, not this shell, which keeps its own remarks ("Terminated") out of the log.
/// Arguments: the file for the code, then the program.
const LAUNCHER: &str = r#"trap : TERM INT HUP QUIT; exec 3>&2 2>/dev/null; exit_file=$1; shift; "$@" 2>&3 3>&-; code=$?; echo $code >"$exit_file"; exit $code"#;

/// Everything a process is started with.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    pub(crate) command: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) working_dir: PathBuf,
    /// Mounted paths, which exist but for new `subPath`s.
    pub(crate) mounted: Vec<PathBuf>,
    /// uid and gid, when they are to be changed.
    pub(crate) user: Option<(u32, u32)>,
}

/// Decides command, environment and working directory.
pub(crate) fn prepare(
    options: &ProcessOptions,
    mapping: &ImageCommand,
    context: &PodContext<'_>,
    container: &Container,
    env: BTreeMap<String, String>,
    home: &Path,
    volumes: &BTreeMap<String, PathBuf>,
) -> Result<Launch, MountError> {
    let mounts = Mounts::of(container, volumes)?;
    let text = |path: &Path| path.to_string_lossy().into_owned();
    // A home that is mounted is the mount; any other would be another directory of this machine.
    let home =
        env.get("HOME").and_then(|home| mounts.translate(Path::new(home))).unwrap_or_else(|| home.to_owned());
    let placeholder = |name: &str| match name {
        "pod_ip" => Some(context.pod_ip.to_string()),
        "home" => Some(text(&home)),
        "port" => first_port(container).map(|port| port.to_string()),
        other => {
            let path = Path::new(other.strip_prefix("mount:")?);
            Some(text(&mounts.translate(path).unwrap_or_else(|| path.to_owned())))
        }
    };
    let command = image::command_line(mapping, container, &env, placeholder);
    let working_dir = match container.working_dir.as_deref().filter(|path| !path.is_empty()) {
        Some(path) => mounts.translate(Path::new(path)),
        None => mapping.working_dir.as_ref().map(|path| image::fill(&text(path), placeholder).into()),
    };
    let mut all: BTreeMap<String, String> = options
        .inherit_env
        .iter()
        .filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)))
        .collect();
    all.extend(mapping.env.iter().map(|(name, value)| (name.clone(), image::fill(value, placeholder))));
    let host = context.pod.metadata.name.clone().unwrap_or_default();
    all.insert("HOSTNAME".to_owned(), host);
    all.extend(env);
    all.insert("HOME".to_owned(), text(&home));
    all.insert("WASMSPAWNER_POD_IP".to_owned(), context.pod_ip.to_string());
    all.extend(mounts.variables());
    Ok(Launch {
        mounted: mounts.hosts().map(Path::to_owned).collect(),
        command,
        env: all,
        working_dir: working_dir.unwrap_or(home),
        user: if options.switch_user { user(context.pod, container) } else { None },
    })
}

/// `runAsUser` and `runAsGroup` of the container, else of the pod.
fn user(pod: &Pod, container: &Container) -> Option<(u32, u32)> {
    let own = container.security_context.as_ref();
    let pods = pod.spec.as_ref().and_then(|spec| spec.security_context.as_ref());
    let uid = own.and_then(|c| c.run_as_user).or_else(|| pods.and_then(|c| c.run_as_user))?;
    let gid = own.and_then(|c| c.run_as_group).or_else(|| pods.and_then(|c| c.run_as_group)).unwrap_or(uid);
    Some((u32::try_from(uid).ok()?, u32::try_from(gid).ok()?))
}

/// Starts the process and records it. The error is what a kubelet would say.
pub(crate) fn start(
    launch: &Launch,
    directory: ContainerDirectory,
    mark: &str,
    restarts: u32,
    now: Timestamp,
) -> Result<ProcessRun, String> {
    let [program, ..] = launch.command.as_slice() else {
        return Err("no command specified".to_owned());
    };
    let search = launch.env.get("PATH").map_or("", String::as_str);
    if !runnable(program, search, &launch.working_dir) {
        return Err(format!("exec: {program:?}: executable file not found in $PATH"));
    }
    spawn(launch, directory, mark, restarts, now)
        .map_err(|error| format!("start of {program:?} failed: {error}"))
}

fn spawn(
    launch: &Launch,
    directory: ContainerDirectory,
    mark: &str,
    restarts: u32,
    now: Timestamp,
) -> io::Result<ProcessRun> {
    create_private(directory.path())?;
    for old in [directory.exit(), directory.record()] {
        let _ = fs::remove_file(old);
    }
    if let Some(before_last) = restarts.checked_sub(2) {
        let _ = fs::remove_file(directory.log(before_last));
        let _ = fs::remove_file(directory.cut_log(before_last));
    }
    fs::create_dir_all(&launch.working_dir)?;
    let log = OpenOptions::new().create(true).append(true).mode(0o600).open(directory.log(restarts))?;
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", LAUNCHER, "sh"])
        .arg(directory.exit())
        .args(&launch.command)
        .env_clear()
        .envs(&launch.env)
        .env(MARK, mark)
        .current_dir(&launch.working_dir)
        .stdin(Stdio::null())
        .stdout(log.try_clone()?)
        .stderr(log)
        .process_group(0);
    if let Some((uid, gid)) = launch.user {
        command.uid(uid).gid(gid);
    }
    let child = command.spawn()?;
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).ok_or(io::ErrorKind::NotFound)?;
    let record = ProcessRecord {
        pid,
        start_ticks: start_ticks(pid).unwrap_or_default(),
        started_at: now,
        restarts,
        mark: mark.to_owned(),
    };
    record.write(&directory)?;
    let leader = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
    Ok(ProcessRun::started(child, leader, &record, directory))
}

/// Whether the shell will find the program.
fn runnable(program: &str, search: &str, working_dir: &Path) -> bool {
    let executable = |path: PathBuf| {
        fs::metadata(path)
            .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return executable(working_dir.join(program));
    }
    search.split(':').any(|directory| executable(Path::new(directory).join(program)))
}

//! Preparation and start of a process.

use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Container;
use rustix::process::Pid;
use tokio::process::Command;

use super::directory::ContainerDirectory;
use super::group::MARK;
use super::record::{ProcessRecord, start_ticks};
use super::run::ProcessRun;
use crate::kubelet::env::PodContext;
use crate::kubelet::image::{self, ImageCommand};
use crate::kubelet::mounts::Mounts;
use crate::kubelet::probe::first_port;
use crate::kubelet::volume::create_private;

/// A shell script that runs the program as a child and writes its exit code to a file, for a later kubelet that adopts
/// the process. A signal to the group must end the program, not this shell. The shell keeps its own messages
/// ("Terminated") out of the log. Arguments: the file for the code, then the program.
const LAUNCHER: &str = r#"trap : TERM INT HUP QUIT; exec 3>&2 2>/dev/null; exit_file=$1; shift; "$@" 2>&3 3>&-; code=$?; echo $code >"$exit_file"; exit $code"#;

/// The variables of this program's environment that processes inherit.
const INHERITED: [&str; 4] = ["PATH", "LANG", "LC_ALL", "TZ"];

/// The parameters of a process.
#[derive(Debug, Clone)]
pub(crate) struct Launch {
    command: Vec<String>,
    env: BTreeMap<String, String>,
    working_dir: PathBuf,
    /// The mounted paths. They exist, except for new `subPath`s.
    pub(super) mounted: Vec<PathBuf>,
}

impl Launch {
    /// Determines the command, the environment and the working directory.
    pub(super) fn prepare(
        mapping: &ImageCommand,
        context: &PodContext<'_>,
        container: &Container,
        env: BTreeMap<String, String>,
        home: &Path,
        volumes: &BTreeMap<String, PathBuf>,
    ) -> Result<Self, String> {
        let mounts = Mounts::from_container(container, volumes)?;
        let text = |path: &Path| path.to_string_lossy().into_owned();
        // A mounted home becomes the directory of its mount. Any other path would be an unrelated directory of this
        // machine.
        let home = env
            .get("HOME")
            .and_then(|home| mounts.translate(Path::new(home)))
            .unwrap_or_else(|| home.to_owned());
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
        let inherited =
            INHERITED.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?)));
        let mut all: BTreeMap<String, String> = inherited.collect();
        all.extend(mapping.env.iter().map(|(name, value)| (name.clone(), image::fill(value, placeholder))));
        all.insert("HOSTNAME".to_owned(), context.pod.metadata.name.clone().unwrap_or_default());
        all.extend(env);
        all.insert("HOME".to_owned(), text(&home));
        all.insert("WASMSPAWNER_POD_IP".to_owned(), context.pod_ip.to_string());
        all.extend(mounts.variables());
        Ok(Self {
            mounted: mounts.hosts().map(Path::to_owned).collect(),
            command,
            env: all,
            working_dir: working_dir.unwrap_or(home),
        })
    }

    /// Starts the process and records it. The error has the wording of a kubelet.
    pub(super) fn start(
        &self,
        directory: ContainerDirectory,
        mark: &str,
        restarts: i32,
        now: Timestamp,
    ) -> Result<ProcessRun, String> {
        let program = self.command.first().ok_or("no command specified")?;
        let search = self.env.get("PATH").map_or("", String::as_str);
        if !runnable(program, search, &self.working_dir) {
            return Err(format!("exec: {program:?}: executable file not found in $PATH"));
        }
        self.spawn(directory, mark, restarts, now)
            .map_err(|error| format!("start of {program:?} failed: {error}"))
    }

    fn spawn(
        &self,
        directory: ContainerDirectory,
        mark: &str,
        restarts: i32,
        now: Timestamp,
    ) -> io::Result<ProcessRun> {
        create_private(directory.path())?;
        // The logs of this run and of the one before are kept.
        let logs = [directory.log(restarts - 2), directory.cut_log(restarts - 2)];
        for old in [directory.exit(), directory.record()].iter().chain(&logs) {
            let _ = fs::remove_file(old);
        }
        fs::create_dir_all(&self.working_dir)?;
        let log = OpenOptions::new().create(true).append(true).mode(0o600).open(directory.log(restarts))?;
        let mut command = Command::new("/bin/sh");
        command
            .args(["-c", LAUNCHER, "sh"])
            .arg(directory.exit())
            .args(&self.command)
            .env_clear()
            .envs(&self.env)
            .env(MARK, mark)
            .current_dir(&self.working_dir)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        let child = command.spawn()?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).ok_or(io::ErrorKind::NotFound)?;
        let start_ticks = start_ticks(pid).unwrap_or_default();
        let record = ProcessRecord { pid, start_ticks, started_at: now, restarts, mark: mark.to_owned() };
        record.write(&directory)?;
        let leader = Pid::from_raw(pid).ok_or(io::ErrorKind::NotFound)?;
        Ok(ProcessRun::started(child, leader, record.mark, directory))
    }
}

/// True if the shell will find the program.
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

//! Compiles components in a separate process, so that a component that exhausts the compiler cannot affect the service.
//!
//! The process is this program with the hidden command `compile-policy`. It reads the component from its standard
//! input, has no environment, may not write files, and is limited in memory and time.

use std::io::{Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use rustix::process::{Resource, Rlimit, Signal, setrlimit};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, Command};

use super::config::compile;
use crate::errors::LoadErrorKind;
use crate::limits::machine_memory;
use crate::names::message::message;

/// The name of the command that compiles a component.
pub const COMMAND: &str = "compile-policy";

/// The maximum size of the machine code of one component, in bytes: some five times that of the largest component. The
/// service holds the machine code twice while it loads a policy.
const MACHINE_CODE: u64 = 160 << 20;
/// The maximum number of threads of a compilation.
const MAX_THREADS: usize = 8;
/// The ratio of a compilation's wall-clock limit to its limit of computing time. A compilation has a low priority while
/// the service is in use, so a busy machine makes it wait.
const PATIENCE: u32 = 5;
/// The maximum length of a message of the compiler, in bytes.
const MESSAGE: u64 = 4 << 10;

/// A compiler that runs in a separate process for each component.
#[derive(Clone, Debug)]
pub struct Compiler {
    /// The program with the command `compile-policy`: this one, or another of the same version.
    pub program: PathBuf,
    /// The maximum memory for the compilation of one component, in bytes. Together with the calls of a policy, which
    /// have a quarter of what the control group allows, it stays below the limit: a kubelet ends all processes of a
    /// container that exceeds it.
    pub memory_bytes: u64,
    /// The maximum size of the machine code of one component, in bytes.
    pub machine_code_bytes: u64,
    /// The limit of computing time on all CPUs. A compilation may take longer on a busy machine.
    pub timeout: Duration,
}

impl Default for Compiler {
    fn default() -> Self {
        Self {
            program: this_program(),
            memory_bytes: (machine_memory::limit() as u64 / 8 * 5).min(2 << 30),
            machine_code_bytes: MACHINE_CODE,
            timeout: Duration::from_mins(1),
        }
    }
}

/// Returns the file of this program. The name used on Linux stays valid when the file is replaced.
fn this_program() -> PathBuf {
    let linux = Path::new("/proc/self/exe");
    if linux.exists() { linux.to_owned() } else { std::env::current_exe().unwrap_or_default() }
}

impl Compiler {
    /// Compiles a component to machine code.
    pub(crate) async fn compile(&self, component: &[u8]) -> Result<Vec<u8>, LoadErrorKind> {
        let child = self.start().map_err(|error| {
            let program = self.program.display();
            LoadErrorKind::Engine(format!("{program} cannot be started to compile the policy: {error}"))
        })?;
        // The child is killed when it is dropped.
        match tokio::time::timeout(self.timeout * PATIENCE, self.run(child, component)).await {
            Ok(Ok((status, machine_code, message))) => self.answer(status, machine_code, &message),
            Ok(Err(error)) => Err(LoadErrorKind::Engine(format!("the compiler cannot be read: {error}"))),
            Err(_) => Err(LoadErrorKind::CompileTimeout(self.timeout.as_secs())),
        }
    }

    fn start(&self) -> std::io::Result<Child> {
        Command::new(&self.program)
            .arg(COMMAND)
            .arg(self.memory_bytes.to_string())
            .arg(self.cpu_seconds().to_string())
            .env_clear()
            // Each thread of a compilation takes memory.
            .env("RAYON_NUM_THREADS", threads().to_string())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }

    /// Returns the limit of CPU time. It applies even if this process ends and cannot kill the other one.
    fn cpu_seconds(&self) -> u64 {
        self.timeout.as_secs().max(1).saturating_mul(threads() as u64)
    }

    fn answer(
        &self,
        status: ExitStatus,
        machine_code: Vec<u8>,
        text: &[u8],
    ) -> Result<Vec<u8>, LoadErrorKind> {
        if machine_code.len() as u64 > self.machine_code_bytes {
            return Err(LoadErrorKind::MachineCode(self.machine_code_bytes >> 20));
        }
        let text = String::from_utf8_lossy(text);
        let text = text.trim().trim_start_matches("error: ");
        if status.success() {
            return Ok(machine_code);
        }
        if status.code() == Some(1) {
            // The engine prints arrays of bytes over several lines.
            let words: Vec<&str> = text.split_whitespace().collect();
            return Err(LoadErrorKind::Compile(message(words.join(" "))));
        }
        if status.signal() == Some(Signal::XCPU.as_raw()) {
            return Err(LoadErrorKind::CompileTimeout(self.timeout.as_secs()));
        }
        tracing::warn!(%status, message = message(text.to_owned()), "the compiler of a policy ended early");
        Err(LoadErrorKind::CompileMemory(self.memory_bytes >> 20))
    }

    /// Sends the component. Returns the exit status, the machine code, and the message.
    async fn run(
        &self,
        mut child: Child,
        component: &[u8],
    ) -> std::io::Result<(ExitStatus, Vec<u8>, Vec<u8>)> {
        let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        // One extra byte shows that the limit is exceeded.
        let most = self.machine_code_bytes.saturating_add(1);
        let send = async {
            if let Some(mut stdin) = stdin {
                // A process that ends before it has read everything reports the reason by its exit code.
                let _ = stdin.write_all(component).await;
            }
            Ok(())
        };
        let ((), machine_code, message) =
            tokio::try_join!(send, received(stdout, most), received(stderr, MESSAGE))?;
        Ok((child.wait().await?, machine_code, message))
    }
}

/// Returns the number of threads for a compilation.
fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS)
}

/// Reads the first `most` bytes of a pipe, and closes it.
async fn received(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

/// Runs the command `compile-policy`: limits this process, compiles the component on standard input, and writes its
/// machine code to standard output.
pub fn compile_standard_input(memory_bytes: u64, cpu_seconds: u64) -> anyhow::Result<()> {
    // When the machine runs out of memory, the kernel ends this process first. A container may not allow this setting.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
    for (resource, most) in [
        (Resource::Data, memory_bytes),
        (Resource::Cpu, cpu_seconds),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
    ] {
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })
            .with_context(|| format!("the limit {resource:?} cannot be set"))?;
    }
    let mut component = Vec::new();
    std::io::stdin().lock().read_to_end(&mut component).context("the component cannot be read")?;
    let machine_code = compile(&component).map_err(|error| anyhow::anyhow!("{error:#}"))?;
    std::io::stdout().lock().write_all(&machine_code).context("the machine code cannot be written")
}

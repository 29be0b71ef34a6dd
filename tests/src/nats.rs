//! A NATS with `JetStream`: Debian's `nats-server`, on an address and with a store of its own.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

/// What is printed where there is no server.
pub const SKIPPED: &str = "skipped: no nats-server on this machine; apt-get install nats-server";

const START: Duration = Duration::from_mins(1);

/// A server; it ends when this value is dropped.
pub struct NatsServer {
    process: Option<Child>,
    program: PathBuf,
    address: SocketAddr,
    folder: TempDir,
}

impl NatsServer {
    /// Starts a server at an address. `config` is added to its configuration. Returns `None` where there is no such program.
    pub fn start(address: Ipv4Addr, config: &str) -> Option<Self> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
        let program = folders.map(|folder| folder.join("nats-server")).find(|program| program.is_file())?;
        let folder = tempfile::tempdir().ok()?;
        let mut server = Self { process: None, program, address: (address, 4222).into(), folder };
        server.configure(config);
        server.run();
        Some(server)
    }

    /// Writes another configuration, for the next start.
    ///
    /// # Panics
    ///
    /// If it cannot be written.
    #[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    pub fn configure(&self, config: &str) {
        let store = self.folder.path().join("store");
        let limits = if config.contains("max_file_store") { "" } else { "max_file_store: 1GB" };
        let config = config.replace("STORE", &format!("store_dir: {:?}", store.display().to_string()));
        let jetstream = format!("jetstream {{ store_dir: {:?}, {limits} }}", store.display().to_string());
        let jetstream = if config.contains("jetstream") { String::new() } else { jetstream };
        let text = format!("listen: \"{}\"\n{jetstream}\n{config}\n", self.address);
        std::fs::write(self.config_file(), text).unwrap();
    }

    /// Starts the server again, and waits until it answers.
    ///
    /// # Panics
    ///
    /// If it does not answer within a minute.
    #[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    pub fn run(&mut self) {
        let log = std::fs::File::create(self.folder.path().join("log")).unwrap();
        let mut command = Command::new(&self.program);
        command.arg("--config").arg(self.config_file()).stdout(Stdio::null()).stderr(log);
        self.process = Some(command.spawn().unwrap());
        let begun = Instant::now();
        while !self.greets() {
            let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < START, "the server does not start:\n{}", log());
            std::thread::yield_now();
        }
    }

    /// Ends the server without warning.
    pub fn kill(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// Lets the server stand still: it accepts connections and answers nothing.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets the server go on.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    /// The address as a URL.
    pub fn url(&self) -> String {
        format!("nats://{}", self.address)
    }

    /// A folder for files of the test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn config_file(&self) -> PathBuf {
        self.folder.path().join("nats.conf")
    }

    #[expect(clippy::unwrap_used, reason = "a test fails by panicking")]
    fn signal(&self, signal: &str) {
        let id = self.process.as_ref().unwrap().id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// True once the server answers: it sends the first line, and answers a ping or refuses who has no login.
    fn greets(&self) -> bool {
        let Ok(mut stream) = TcpStream::connect_timeout(&self.address, START) else { return false };
        let _ = stream.set_read_timeout(Some(START));
        let mut start = [0; 5];
        stream.read_exact(&mut start).is_ok() && &start == b"INFO " && stream.write_all(b"PING\r\n").is_ok()
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

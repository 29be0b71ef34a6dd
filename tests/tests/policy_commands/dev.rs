//! `policy dev`: a policy under development, with typical mistakes.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::json;
use wasmspawner_tests::service::Service;

use super::{BINARY, command, refusal, told};

/// The time limit. A first build takes a minute on a busy machine.
const BOUND: Duration = Duration::from_mins(4);

/// A running `policy dev`; it ends when this value is dropped.
struct Dev {
    process: Child,
    lines: Receiver<String>,
}

impl Dev {
    fn start(mut command: Command) -> Self {
        let mut process = command.stdout(Stdio::piped()).spawn().unwrap();
        let (send, lines) = channel();
        let output = BufReader::new(process.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Self { process, lines }
    }

    /// Returns the output until the command waits for a change.
    fn round(&self) -> String {
        let mut round = String::new();
        loop {
            let line = self.lines.recv_timeout(BOUND);
            assert!(line.is_ok(), "{line:?} after:\n{round}");
            let line = line.unwrap();
            round += &line;
            round += "\n";
            if line.starts_with("waiting for a change in ") {
                return round;
            }
        }
    }
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_built_tested_and_used_whenever_it_changes() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    told(here, &["new", "watched"]);
    // The crates are those of this repository, so they are already present.
    let target = concat!(env!("CARGO_TARGET_TMPDIR"), "/new-policy");
    let offline = |arguments: &[&str]| {
        let mut command = command(here, arguments);
        command.env("CARGO_NET_OFFLINE", "true").env("CARGO_TARGET_DIR", target);
        command
    };
    let built = offline(&["build", "watched"]).output().unwrap();
    assert!(built.status.success(), "{built:?}");
    let path = here.join("watched/watched.wasm");
    let with_it = |config: &mut serde_json::Value| {
        let sizes = json!([{ "name": "small", "cpu": 1, "memory": "1Gi" }]);
        config["policies"] = json!([{ "name": "sizes", "path": path, "config": { "sizes": sizes } }]);
    };
    let mut service = Service::start_with(BINARY, with_it).await.unwrap();
    let url = format!("http://{}/spawner/v1", service.api());
    let state_dir = service.folder().to_str().unwrap().to_owned();

    let mut dev =
        Dev::start(offline(&["dev", "watched", "--reload", "--url", &url, "--state-dir", &state_dir]));
    let first = dev.round();
    for expected in [
        "built: watched/watched.wasm  ",
        "watched/config.yaml: ok\n",
        "3 cases, 0 failed\n",
        "service: in use as the policy sizes\n",
    ] {
        assert!(first.contains(expected), "{expected}: {first}");
    }

    // A mistake does not end the command.
    let source = here.join("watched/src/lib.rs");
    let good = std::fs::read_to_string(&source).unwrap();
    std::fs::write(&source, format!("{good}\nfn unfinished(")).unwrap();
    let broken = dev.round();
    assert!(
        broken.contains("changed: src/lib.rs\n")
            && broken.contains("failed: cargo could not build the policy"),
        "{broken}"
    );
    assert!(!broken.contains("service: "), "{broken}");

    // After the correction, the service has the new version.
    std::fs::write(&source, good.replace("CARGO_PKG_VERSION", "CARGO_PKG_NAME")).unwrap();
    let mended = dev.round();
    assert!(mended.contains("service: in use as the policy sizes\n"), "{mended}");
    let listed = told(here, &["list", "--url", &url, "--state-dir", &state_dir, "--json"]);
    let listed: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed[0]["version"], "watched");

    // A mistake in the configuration or the answers is reported, and the service is not called.
    std::fs::write(here.join("watched/config.yaml"), "sizes: [{name: small, cpu: x, memory: 2Gi}]").unwrap();
    let refused = dev.round();
    assert!(refused.contains("watched/config.yaml: /sizes/0/cpu: "), "{refused}");
    assert!(refused.contains("failed: the policy does not accept its configuration"), "{refused}");
    std::fs::write(here.join("watched/config.yaml"), "sizes: [{name: small, cpu: 2, memory: 2Gi}]").unwrap();
    let different = dev.round();
    assert!(
        different.contains("FAILED   watched/cases/") && different.contains("expected \"1 CPU"),
        "{different}"
    );
    assert!(!different.contains("service: "), "{different}");
    for case in std::fs::read_dir(here.join("watched/cases")).unwrap() {
        std::fs::remove_file(case.unwrap().path()).unwrap();
    }
    std::fs::remove_dir(here.join("watched/cases")).unwrap();
    assert!(dev.round().contains("service: in use as the policy sizes\n"));

    // The service ends, but the command continues.
    service.kill();
    std::fs::write(&source, &good).unwrap();
    let alone = dev.round();
    assert!(alone.contains("failed: the service does not use it: the service at http://"), "{alone}");
    assert!(alone.contains("does it run there?"), "{alone}");
    assert!(dev.process.try_wait().unwrap().is_none());
    Command::new("kill").args(["-INT", &dev.process.id().to_string()]).status().unwrap();
    assert!(!dev.process.wait().unwrap().success(), "a signal has ended it");
}

#[test]
fn a_folder_and_a_credential_are_needed_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    assert!(
        refusal(here, &["dev", "nothing"])
            .contains("nothing is no folder; `wasmspawner policy new` makes a policy")
    );
    let state_dir = here.to_str().unwrap();
    let refused = refusal(here, &["dev", ".", "--reload", "--state-dir", state_dir]);
    assert!(refused.contains("no credential: set WASMSPAWNER_TOKEN"), "{refused}");
}

//! `deploy/monitoring`: the alerts and the dashboard, with the metrics that the service exports.

mod files;
mod prometheus;
mod queries;

use std::path::PathBuf;
use std::process::Command;

/// A file of `deploy/monitoring`.
fn path(file: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../deploy/monitoring").join(file)
}

fn read(file: &str) -> String {
    std::fs::read_to_string(path(file)).unwrap()
}

/// A command of Debian's package `prometheus`. If it is missing, the test prints that it is skipped.
fn installed(program: &str) -> Option<Command> {
    if Command::new(program).arg("--version").output().is_err() {
        println!("skipped: there is no {program}; it is in the package `prometheus` of Debian");
        return None;
    }
    Some(Command::new(program))
}

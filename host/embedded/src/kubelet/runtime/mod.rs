//! The seam between a pod's life and what runs its containers.

mod pod;

pub(crate) use pod::PodRuntime;

use std::time::Duration;

use jiff::Timestamp;

use super::{
    probe::Target,
    process::{Launch, ProcessRun},
    simulated::SimulatedRun,
    status::Termination,
};

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Exit {
    pub(crate) code: i32,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
}

impl Exit {
    pub(crate) fn completed() -> Self {
        Self::of_code(0)
    }

    pub(crate) fn of_code(code: i32) -> Self {
        Self { code, reason: if code == 0 { "Completed" } else { "Error" }, message: String::new() }
    }

    /// A container that could not be started counts as one that ended at once.
    pub(crate) fn not_started(message: String) -> Self {
        Self { code: 128, reason: "StartError", message }
    }
}

/// What a container is to its pod.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Init,
    Sidecar,
    Main,
}

/// Whether the node has an image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ImageState {
    Present,
    Pulls { after: Duration },
    Unavailable { after: Duration, message: String },
    Invalid,
    NeverPull,
}

/// A container that has everything it needs to start.
#[derive(Debug)]
pub(crate) enum Prepared {
    Process(Box<Launch>),
    Simulated,
}

/// A container as it is found after a restart of this program.
#[derive(Debug)]
pub(crate) enum Adoption {
    Running {
        run: Run,
        since: Timestamp,
        restarts: u32,
    },
    Ended {
        end: Termination,
        restarts: u32,
    },
    /// Never started.
    Fresh,
}

/// How a container's health is found out.
#[derive(Debug)]
pub(crate) enum Health {
    Asked(Target),
    Simulated { ready_after: Duration },
}

/// A container that runs.
#[derive(Debug)]
pub(crate) enum Run {
    Process(ProcessRun),
    Simulated(SimulatedRun),
}

impl Run {
    /// Until it ends.
    pub(crate) async fn wait(&mut self) -> Exit {
        match self {
            Self::Process(run) => run.wait().await,
            Self::Simulated(run) => run.wait().await,
        }
    }

    /// TERM.
    pub(crate) fn terminate(&mut self) {
        match self {
            Self::Process(run) => run.terminate(),
            Self::Simulated(run) => run.terminate(),
        }
    }

    /// KILL.
    pub(crate) fn kill(&mut self) {
        match self {
            Self::Process(run) => run.kill(),
            Self::Simulated(run) => run.kill(),
        }
    }
}

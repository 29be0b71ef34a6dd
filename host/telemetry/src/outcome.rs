use wasmspawner_core::lifecycle::Blame;

/// The outcome of a spawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnOutcome {
    /// The lab is ready.
    Complete,
    /// The spawn failed through no fault of the user; the value says who is at fault.
    Failed(Blame),
    /// The spawn failed through a fault of the user; for example, a policy denied it.
    Denied,
    /// The spawn was stopped before the lab was ready.
    Cancelled,
}

impl SpawnOutcome {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Complete => "complete",
            Self::Failed(_) => "failed",
            Self::Denied => "denied",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The result of comparing the labs with the servers that JupyterHub knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubCheck {
    /// The comparison succeeded.
    Compared,
    /// The result is not trusted, because too many labs look forgotten.
    ImplausibleResult,
    /// JupyterHub did not answer, or its list was incomplete.
    NoAnswer,
    /// JupyterHub does not accept the token, or a setting is wrong.
    Refused,
}

impl HubCheck {
    pub(super) const ALL: [Self; 4] =
        [Self::Compared, Self::ImplausibleResult, Self::NoAnswer, Self::Refused];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Compared => "compared",
            Self::ImplausibleResult => "withheld",
            Self::NoAnswer => "no_answer",
            Self::Refused => "refused",
        }
    }
}

/// The outcome of a prepull of an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepull {
    /// The node has the image.
    Pulled,
    /// The node could not pull the image. The pull is retried.
    Failed,
    /// The node or the image is no longer needed.
    NotNeeded,
}

impl Prepull {
    pub(super) const ALL: [Self; 3] = [Self::Pulled, Self::Failed, Self::NotNeeded];

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Pulled => "pulled",
            Self::Failed => "failed",
            Self::NotNeeded => "not_needed",
        }
    }
}

/// Numbers of prepulls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrepullCounts {
    /// Prepulls in progress.
    pub running: usize,
    /// Prepulls still to be done, counted once for each node and image.
    pub missing: usize,
    /// Prepulls whose last attempt failed.
    pub failing: usize,
}

/// The result of reloading the configuration or the policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// The new configuration and policies are in use.
    Done,
    /// A part could not be used. The old configuration and policies stay.
    Failed,
}

impl Reload {
    pub(super) const ALL: [Self; 2] = [Self::Done, Self::Failed];

    /// Returns the outcome that a result stands for.
    pub fn of<T, E>(reloaded: &Result<T, E>) -> Self {
        if reloaded.is_ok() { Self::Done } else { Self::Failed }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Failed => "failed",
        }
    }
}

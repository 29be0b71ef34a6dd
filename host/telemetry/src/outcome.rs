use wasmspawner_core::lifecycle::Blame;

/// How a spawn ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpawnOutcome {
    /// The lab is ready.
    Complete,
    /// The spawn failed, and the user is not at fault, but somebody else.
    Failed(Blame),
    /// The spawn failed, and the user is at fault; for example, a policy refused it.
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

/// The result of comparing the labs with the servers that the Hub knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubCheck {
    /// The comparison succeeded.
    Compared,
    /// So many labs look forgotten that the comparison is not trusted.
    ImplausibleResult,
    /// The Hub did not answer, or its list was not complete.
    NoAnswer,
    /// The Hub does not accept the token, or a setting is wrong.
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

/// How a pull of an image in advance ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prepull {
    /// The node has the image.
    Pulled,
    /// The node could not pull it; it is tried again.
    Failed,
    /// The node or the image is not needed any more.
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

/// Numbers of pulls in advance.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrepullCounts {
    /// Those that run.
    pub running: usize,
    /// Those that are still to be made, once for each node and image.
    pub missing: usize,
    /// Those that have failed the last time.
    pub failing: usize,
}

/// The result of loading the configuration or the policies anew while the service runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reload {
    /// The new ones are in use.
    Done,
    /// One part could not be used, and the old ones stay.
    Failed,
}

impl Reload {
    pub(super) const ALL: [Self; 2] = [Self::Done, Self::Failed];

    /// What came of a reload.
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

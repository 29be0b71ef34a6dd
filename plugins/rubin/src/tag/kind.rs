/// The type of a tag, in the order of the menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    /// Another name of an image, such as `recommended`.
    Alias,
    Release,
    Weekly,
    Daily,
    ReleaseCandidate,
    Experimental,
    Unknown,
}

impl Kind {
    /// The first word of the names of tags of this type.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Alias => "Alias",
            Self::Release => "Release",
            Self::Weekly => "Weekly",
            Self::Daily => "Daily",
            Self::ReleaseCandidate => "Release Candidate",
            Self::Experimental => "Experimental",
            Self::Unknown => "Unknown",
        }
    }

    /// The title above the images of this type in the menu.
    pub(crate) fn title(self) -> &'static str {
        match self {
            Self::Alias => "Aliases",
            Self::Release => "Releases",
            Self::Weekly => "Weeklies",
            Self::Daily => "Dailies",
            Self::ReleaseCandidate => "Release candidates",
            Self::Experimental => "Experimental",
            Self::Unknown => "Others",
        }
    }
}

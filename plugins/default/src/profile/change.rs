use serde::de::DeserializeOwned;
use wasmspawner_sdk::Section;

/// The effect of an override on a setting. KubeSpawner distinguishes an absent key from one that is `null`.
#[derive(Clone, Default)]
pub(super) enum Change<T> {
    /// The key is absent.
    #[default]
    Keep,
    /// The key is `null`.
    Unset,
    Set(T),
}

impl<T: Clone> Change<T> {
    pub(super) fn read(entry: &mut Section<'_>, key: &'static str) -> Self
    where
        T: DeserializeOwned,
    {
        Self::given(entry.has(key), entry.optional(key))
    }

    /// The change for a key: `there` is false if the key is absent.
    pub(super) fn given(there: bool, value: Option<T>) -> Self {
        match value {
            Some(value) => Self::Set(value),
            None if there => Self::Unset,
            None => Self::Keep,
        }
    }

    /// Treats `nothing` as no limit, for which KubeSpawner writes `0`.
    pub(super) fn unless(self, nothing: &T) -> Self
    where
        T: PartialEq,
    {
        match self {
            Self::Set(value) if value == *nothing => Self::Unset,
            other => other,
        }
    }

    pub(super) fn value(&self) -> Option<&T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Unset => None,
        }
    }

    pub(super) fn value_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::Set(value) => Some(value),
            Self::Keep | Self::Unset => None,
        }
    }

    pub(super) fn apply(&self, to: &mut Option<T>) {
        match self {
            Self::Keep => {}
            Self::Unset => *to = None,
            Self::Set(value) => *to = Some(value.clone()),
        }
    }
}

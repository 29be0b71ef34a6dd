use serde_json::Value;
use wasmspawner_sdk::Section;

/// The effect of an override on a list. Sites write lists also as maps, whose keys are only names for Helm: their values
/// in the order of the keys are the list.
#[derive(Clone, Default)]
pub(super) enum Items<T> {
    /// The key is absent.
    #[default]
    Keep,
    /// A list, or `null`: takes the place of the list before.
    Replace(Vec<T>),
    /// A map: is added to the list before. An entry takes the place of one with the same name.
    Add(Vec<T>),
}

impl<T: Clone> Items<T> {
    pub(super) fn read(entry: &mut Section<'_>, key: &'static str, read: fn(&mut Section<'_>) -> T) -> Self {
        match entry.optional::<Value>(key) {
            Some(Value::Object(_)) => Self::Add(entry.map(key, read).into_values().collect()),
            None if !entry.has(key) => Self::Keep,
            _ => Self::Replace(entry.list(key, read)),
        }
    }

    pub(super) fn items(&self) -> &[T] {
        match self {
            Self::Keep => &[],
            Self::Replace(items) | Self::Add(items) => items,
        }
    }

    pub(super) fn items_mut(&mut self) -> &mut [T] {
        match self {
            Self::Keep => &mut [],
            Self::Replace(items) | Self::Add(items) => items,
        }
    }

    /// Applies the change to a list; `same` tells whether two entries have the same name.
    pub(super) fn apply(&self, to: &mut Vec<T>, same: fn(&T, &T) -> bool) {
        match self {
            Self::Keep => {}
            Self::Replace(items) => to.clone_from(items),
            Self::Add(items) => {
                to.retain(|before| items.iter().all(|item| !same(before, item)));
                to.extend(items.iter().cloned());
            }
        }
    }
}

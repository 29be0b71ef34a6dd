//! Words of closed sets, as another version of the service may have written them.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Reads a word that is for people. One that a later version has added must not make the record unreadable, because nothing
/// is decided by it.
pub(crate) fn word_or<'de, D, T>(deserializer: D, otherwise: T) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    Ok(serde_json::from_value(Value::deserialize(deserializer)?).unwrap_or(otherwise))
}

/// Reads a list for people. Items with a word that a later version has added are left out.
pub(crate) fn known_items<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: DeserializeOwned,
{
    let items = Vec::<Value>::deserialize(deserializer)?;
    Ok(items.into_iter().filter_map(|item| serde_json::from_value(item).ok()).collect())
}

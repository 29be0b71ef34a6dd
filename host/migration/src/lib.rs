//! Values of Zero to JupyterHub, the Helm chart of JupyterHub, or of Nublado, converted to a configuration of this service.
//! Reads and writes no files.
//!
//! `table` says of each key of the chart, and `settings` of each setting of KubeSpawner, what becomes of it: both the
//! configuration and the report are made from them. `nublado` does the same for Nublado.

mod becomes;
mod claims;
mod defaults;
mod draft;
mod grants;
mod groups;
mod hub_names;
mod identity;
mod layers;
mod migration;
mod name_overrides;
mod network;
mod nublado;
mod profiles;
mod python;
mod report;
mod settings;
mod spawner;
mod storage;
mod table;
#[cfg(test)]
mod tests;
mod values_file;

use serde_json::Value;

pub use layers::layered;
pub use migration::{Migration, Target};
pub use nublado::{NubladoTarget, migrate_nublado};
pub use report::{Entry, Outcome, Report};
pub use values_file::ValuesFile;

use draft::Draft;

/// Converts values files, of which later ones count over earlier ones.
///
/// # Errors
/// The files are no values of this chart.
pub fn migrate(files: &[ValuesFile], target: &Target) -> Result<Migration, String> {
    let roots = roots(files)?;
    let given: Vec<&Value> =
        files.iter().zip(&roots).filter_map(|(file, root)| at(&file.values, root)).collect();
    let values = layered(&defaults::of_chart(), &given);
    let mut draft = Draft::new(files, roots, target);
    table::convert(&values, &mut draft);
    draft.other_roots();
    claims::own(&mut draft);
    Ok(draft.finish())
}

/// Converts a `jupyterhub_config.py`: its assignments of literals to settings of the spawner. Everything else is listed.
pub fn migrate_python(name: &str, text: &str, target: &Target) -> Migration {
    let mut draft = Draft::new(&[], Vec::new(), target);
    spawner::python(&mut draft, name, text);
    claims::own(&mut draft);
    draft.finish()
}

/// The key below which each file has the chart's values: none, or that of a chart which has JupyterHub's as a part. That
/// chart may be a part of another one.
fn roots(files: &[ValuesFile]) -> Result<Vec<String>, String> {
    let has = |key: &str| files.iter().any(|file| file.values.get(key).is_some_and(Value::is_object));
    let below: Vec<_> = files.iter().map(|file| root_in(&file.values)).collect();
    let at_top = has("singleuser") || (has("hub") && !has(PART));
    if !at_top && below.iter().any(Option::is_some) {
        return Ok(below.into_iter().map(|root| root.unwrap_or_else(|| PART.to_owned())).collect());
    }
    if files.iter().all(|file| file.values.as_object().is_none_or(serde_json::Map::is_empty)) {
        return Err("the files have no values".to_owned());
    }
    let known = |key: &String| table::is_root(key);
    if at_top
        || files.iter().filter_map(|file| file.values.as_object()).flat_map(serde_json::Map::keys).any(known)
    {
        return Ok(vec![String::new(); files.len()]);
    }
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    Err(format!(
        "{}: there are no values of Zero to JupyterHub, neither at the top nor below `jupyterhub`",
        names.join(", ")
    ))
}

/// The key at which a chart has JupyterHub's as a part.
const PART: &str = "jupyterhub";

fn root_in(values: &Value) -> Option<String> {
    let has = |values: &Value| values.get(PART).is_some_and(Value::is_object);
    if has(values) {
        return Some(PART.to_owned());
    }
    let is_chart = |key: &str| !table::is_root(key) && !key.contains('.');
    let (key, _) = values.as_object()?.iter().find(|(key, part)| is_chart(key) && has(part))?;
    Some(format!("{key}.{PART}"))
}

fn at<'a>(values: &'a Value, root: &str) -> Option<&'a Value> {
    root.split('.').filter(|key| !key.is_empty()).try_fold(values, |value, key| value.get(key))
}

//! Values of Zero to JupyterHub, the Helm chart of JupyterHub, or of Nublado, converted to a configuration of this service.
//! Reads and writes no files.
//!
//! `table` says of each key of the chart, and `settings` of each setting of KubeSpawner, what becomes of it: both the
//! configuration and the report are made from them. `nublado` does the same for Nublado.

mod becomes;
mod defaults;
mod draft;
mod grants;
mod layers;
mod migration;
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
    let root = root(files)?;
    let given: Vec<&Value> = files.iter().filter_map(|file| at(&file.values, root)).collect();
    let values = layered(&defaults::of_chart(), &given);
    let mut draft = Draft::new(files, root, target);
    table::convert(&values, &mut draft);
    if !root.is_empty() {
        draft.other_roots();
    }
    Ok(draft.finish())
}

/// Converts a `jupyterhub_config.py`: its assignments of literals to settings of the spawner. Everything else is listed.
pub fn migrate_python(name: &str, text: &str, target: &Target) -> Migration {
    let mut draft = Draft::new(&[], "", target);
    spawner::python(&mut draft, name, text);
    draft.finish()
}

/// The key below which the chart's values are: none, or that of a chart which has JupyterHub's as a part.
fn root(files: &[ValuesFile]) -> Result<&'static str, String> {
    let has = |key: &str| files.iter().any(|file| file.values.get(key).is_some_and(Value::is_object));
    if has("singleuser") || (has("hub") && !has("jupyterhub")) {
        return Ok("");
    }
    if has("jupyterhub") {
        return Ok("jupyterhub");
    }
    if files.iter().all(|file| file.values.as_object().is_none_or(serde_json::Map::is_empty)) {
        return Err("the files have no values".to_owned());
    }
    let known = |key: &String| table::is_root(key);
    if files.iter().filter_map(|file| file.values.as_object()).flat_map(serde_json::Map::keys).any(known) {
        return Ok("");
    }
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    Err(format!(
        "{}: there are no values of Zero to JupyterHub, neither at the top nor below `jupyterhub`",
        names.join(", ")
    ))
}

fn at<'a>(values: &'a Value, root: &str) -> Option<&'a Value> {
    if root.is_empty() { Some(values) } else { values.get(root) }
}

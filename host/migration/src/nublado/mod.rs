//! Values of Nublado, the spawner of the Rubin Science Platform, converted to a configuration of this service with the
//! policy `rubin`. The key `controller.config` is the configuration of Nublado's controller (version 15).

mod chart;
mod controller;
mod duration;
mod images;
mod lab;
mod reader;
mod shape;
mod storage;
mod target;
#[cfg(test)]
mod tests;

use serde_json::{Value, json};

use crate::layers::layered;
use crate::migration::Migration;
use crate::values_file::ValuesFile;

pub use target::NubladoTarget;

use chart::CONFIG;
use reader::Reader;

/// Converts values files, of which later ones count over earlier ones. The chart's own `values.yaml` comes first.
///
/// # Errors
/// The files have no configuration of Nublado's controller, or only a part of it.
pub fn migrate_nublado(files: &[ValuesFile], target: &NubladoTarget) -> Result<Migration, String> {
    let given: Vec<&Value> = files.iter().map(|file| &file.values).collect();
    let values = layered(&json!({}), &given);
    let names: Vec<_> = files.iter().map(|file| file.name.as_str()).collect();
    let names = names.join(", ");
    let Some(config) = values.pointer("/controller/config").and_then(Value::as_object) else {
        return Err(format!(
            "{names}: there is no `{CONFIG}`, which is the configuration of Nublado's controller"
        ));
    };
    let has_sizes = config.get("lab").and_then(|lab| lab.get("sizes")).and_then(Value::as_array);
    if has_sizes.is_none_or(Vec::is_empty) {
        return Err(format!(
            "{names}: `{CONFIG}.lab.sizes` has no sizes of labs; name the chart's own values.yaml as the first file"
        ));
    }
    let mut reader = Reader::new(files, target);
    reader.set_service("http.dialects", json!(["nublado"]));
    chart::read(&mut reader, &values);
    Ok(reader.finish())
}

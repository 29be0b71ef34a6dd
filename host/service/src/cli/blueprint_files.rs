//! The folder with blueprints, one in each file.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, bail};
use wasmspawner_core::config::BlueprintsConfig;
use wasmspawner_core::custom_resource::blueprint::BlueprintSpec;
use wasmspawner_core::names::ObjectName;

use wasmspawner_files::confined_file::Folder;
use wasmspawner_files::yaml_problem;

/// The maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 256 << 10;

/// Adds the blueprints of the folder to those of the configuration file.
pub(super) fn add(blueprints: &mut BlueprintsConfig, beside: &Path) -> anyhow::Result<()> {
    let Some(folder) = blueprints.folder.as_ref().map(|folder| beside.join(folder)) else { return Ok(()) };
    let unreadable = || format!("blueprints.folder: the folder {} cannot be read", folder.display());
    let opened = Folder::open(&folder).with_context(unreadable)?;
    for file in opened.names().with_context(unreadable)? {
        let path = Path::new(&file);
        // Editors and Kubernetes' mounts create hidden files.
        if path.extension() != Some(OsStr::new("yaml")) || file.to_string_lossy().starts_with('.') {
            continue;
        }
        let shown = folder.join(path);
        let (name, spec) =
            read(&opened, path).with_context(|| format!("the blueprint {}", shown.display()))?;
        if blueprints.site.insert(name.clone(), spec).is_some() {
            bail!(
                "the blueprint {}: `{name}` is in blueprints.site, too; remove one of them",
                shown.display()
            );
        }
    }
    Ok(())
}

fn read(folder: &Folder, file: &Path) -> anyhow::Result<(ObjectName, BlueprintSpec)> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = ObjectName::parse(stem.as_ref()).context("the file is named after its blueprint")?;
    let text = folder.read_text(file, MAX_FILE_BYTES)?;
    let spec = serde_saphyr::from_str(&text)
        .map_err(|error| anyhow::anyhow!("{}", yaml_problem::in_one_line(&error)))?;
    Ok((name, spec))
}

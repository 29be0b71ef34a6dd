//! The folder with blueprints, one in each file.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Context, bail};
use wasmspawner_core::blueprint::BlueprintSpec;
use wasmspawner_core::config::BlueprintsConfig;
use wasmspawner_core::names::ObjectName;

use crate::yaml_problem;

/// The largest file, in bytes.
const LARGEST: u64 = 256 << 10;

/// Adds the blueprints of the folder to those of the configuration file.
pub(super) fn add(blueprints: &mut BlueprintsConfig, beside: &Path) -> anyhow::Result<()> {
    let Some(folder) = blueprints.folder.as_ref().map(|folder| beside.join(folder)) else { return Ok(()) };
    let opened = cap_std::fs::Dir::open_ambient_dir(&folder, cap_std::ambient_authority());
    let opened = opened
        .with_context(|| format!("blueprints.folder: the folder {} cannot be read", folder.display()))?;
    for entry in opened.entries().with_context(|| format!("blueprints.folder: {}", folder.display()))? {
        let file = entry.with_context(|| format!("blueprints.folder: {}", folder.display()))?.file_name();
        let path = Path::new(&file);
        // Hidden files are those of editors, and of Kubernetes' mounts.
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

/// Reads a file. A link may lead out of the folder only where the folder's own file system allows it, so none does.
fn read(folder: &cap_std::fs::Dir, file: &Path) -> anyhow::Result<(ObjectName, BlueprintSpec)> {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy();
    let name = ObjectName::parse(stem.as_ref()).context("the file is named after its blueprint")?;
    let size = folder.metadata(file)?.len();
    if size > LARGEST {
        bail!("the file has {size} bytes; the largest that is read has {LARGEST}");
    }
    let text = folder.read_to_string(file)?;
    let spec = serde_saphyr::from_str(&text)
        .map_err(|error| anyhow::anyhow!("{}", yaml_problem::in_one_line(&error)))?;
    Ok((name, spec))
}

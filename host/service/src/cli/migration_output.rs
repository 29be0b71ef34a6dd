//! The files that `wasmspawner migrate` reads and writes, and its report.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context as _;
use serde::Deserialize as _;
use serde_json::Value;
use wasmspawner_core::config::ConfigFile;
use wasmspawner_migration::{Migration, ValuesFile};

/// The exit code if a person has to decide something.
pub(super) const OPEN: u8 = 3;

/// Writes the new files, with `further` ones, and prints the report, which ends with `next`: what to do with the files.
pub(super) fn finish(
    mut migration: Migration,
    output: Option<&Path>,
    files: &[PathBuf],
    further: &[(&str, String)],
    next: &str,
    out: &mut impl Write,
) -> anyhow::Result<ExitCode> {
    for (key, problem) in problems(&migration.config) {
        migration.report.invalid(&key, &problem);
    }
    let open = migration.report.open();
    let report = format!("# Report\n\n{}{next}", migration.report.text());
    if let Some(folder) = output {
        let names: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
        write_all(folder, &migration, further, &names.join(", "), &report)?;
    }
    write!(out, "{report}")?;
    let summary = match open {
        0 => "Nothing is to be decided.".to_owned(),
        1 => "1 entry is to be decided.".to_owned(),
        _ => format!("{open} entries are to be decided."),
    };
    writeln!(out, "{summary}")?;
    Ok(if open == 0 { ExitCode::SUCCESS } else { ExitCode::from(OPEN) })
}

/// Reads files of values.
pub(super) fn values_files(paths: &[PathBuf]) -> anyhow::Result<Vec<ValuesFile>> {
    let parse = |path: &PathBuf| {
        let name = path.display().to_string();
        ValuesFile::parse(&name, &read(path)?).map_err(anyhow::Error::msg)
    };
    paths.iter().map(parse).collect()
}

pub(super) fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

/// Returns the keys of the new configuration that the service would refuse, each with the reason.
pub(super) fn problems(config: &Value) -> Vec<(String, String)> {
    let mut track = serde_path_to_error::Track::new();
    let parsed = ConfigFile::deserialize(serde_path_to_error::Deserializer::new(config, &mut track));
    match parsed {
        Err(error) => vec![(track.path().to_string(), error.to_string())],
        Ok(file) => {
            let problems = file.validate().err().unwrap_or_default();
            problems.iter().map(|problem| (problem.key.clone(), problem.problem.clone())).collect()
        }
    }
}

/// Writes the new files. None of them may be there before: a person may have changed it.
fn write_all(
    folder: &Path,
    migration: &Migration,
    further: &[(&str, String)],
    names: &str,
    report: &str,
) -> anyhow::Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let head = format!("# Made by `wasmspawner migrate` of {names}.\n");
    let yaml = |value: &Value| anyhow::Ok(head.clone() + &serde_saphyr::to_string(value)?);
    let own = [
        ("wasmspawner.yaml", yaml(&migration.config)?),
        ("chart-values.yaml", yaml(&migration.chart_values)?),
        ("report.md", report.to_owned()),
    ];
    let further = further.iter().map(|(name, text)| (*name, head.clone() + text));
    for (name, text) in own.into_iter().chain(further) {
        let path = folder.join(name);
        // A value may be confidential although it does not look like it.
        let mut file =
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path).with_context(|| {
                format!("cannot write {}; name an empty folder with --output", path.display())
            })?;
        file.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

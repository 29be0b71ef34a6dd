//! Pages of the repository: their commands are commands of this program, and their examples are configurations that it reads.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use clap::Parser as _;
use clap::error::ErrorKind;
use serde::Deserialize as _;
use serde_json::Value;
use wasmspawner_core::config::ConfigFile;

use super::Cli;

/// Topics of the command of the same name that the package for Python has.
const OF_PYTHON: [&str; 2] = ["dask", "kernelspec"];

/// A command on a page.
struct Command {
    place: String,
    words: Vec<String>,
    /// True for a whole command; a sentence may leave out what a command needs.
    whole: bool,
}

#[test]
fn every_command_on_a_page_is_a_command() {
    let mut commands = Vec::new();
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        let name = page.file_name().unwrap().to_string_lossy().into_owned();
        commands.extend(in_blocks(&name, &text));
        commands.extend(in_sentences(&name, &text));
    }
    assert!(commands.iter().filter(|command| command.whole).count() > 40, "few commands in blocks");
    assert!(commands.iter().filter(|command| !command.whole).count() > 60, "few commands in sentences");
    let wrong: Vec<String> = commands.iter().filter_map(problem).collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

fn problem(command: &Command) -> Option<String> {
    if command.words.get(1).is_none_or(|topic| OF_PYTHON.contains(&topic.as_str())) {
        return None;
    }
    let error = Cli::try_parse_from(&command.words).err()?;
    let incomplete = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::InvalidValue,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayVersion,
    ];
    // A page may have a word such as `ID` in the place of a value.
    let is_placeholder = error.kind() == ErrorKind::ValueValidation;
    let fine = is_placeholder || !command.whole && incomplete.contains(&error.kind());
    let first = error.to_string().lines().next().unwrap_or_default().to_owned();
    (!fine).then(|| format!("{}: {}: {first}", command.place, command.words.join(" ")))
}

/// Commands in blocks for a shell.
fn in_blocks(page: &str, text: &str) -> Vec<Command> {
    let text = text.replace("\\\n", " ");
    let mut shell = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if let Some(language) = line.trim_start().strip_prefix("```") {
            shell = matches!(language, "sh" | "console");
            continue;
        }
        let line = line.trim_start().trim_start_matches("$ ");
        for part in line.split(['|', ';', '&', '>', '(', ')']).filter(|_| shell) {
            found.extend(command(page, part, true));
        }
    }
    found
}

/// Commands between backticks.
fn in_sentences(page: &str, text: &str) -> Vec<Command> {
    let outside: String =
        text.split("```").step_by(2).map(|part| part.replace('\n', " ")).collect::<Vec<_>>().join("\n");
    let parts = outside
        .lines()
        .flat_map(|line| line.split('`').skip(1).step_by(2).map(str::to_owned).collect::<Vec<_>>());
    parts.filter_map(|part| command(page, part.split(" | ").next()?, false)).collect()
}

/// The command in a part of a line, if it is one of this program.
fn command(page: &str, part: &str, whole: bool) -> Option<Command> {
    let part = part.split(" #").next().unwrap_or_default();
    let words: Vec<String> = part
        .split_whitespace()
        .skip_while(|word| word.contains('=') && !word.starts_with('-'))
        .map(|word| word.trim_matches(['[', ']', '\'', '"', '{', '}']).to_owned())
        .filter(|word| !word.contains("..."))
        .collect();
    let program = words.first()?;
    ["wasmspawner", "target/debug/wasmspawner"].contains(&program.as_str()).then(|| Command {
        place: page.to_owned(),
        words,
        whole,
    })
}

/// Examples may leave sections out, so they are read and not checked as a whole.
#[test]
fn every_example_on_a_page_is_read() {
    let schema = serde_json::to_value(schemars::schema_for!(ConfigFile)).unwrap();
    let sections: BTreeSet<&str> =
        schema["properties"].as_object().unwrap().keys().map(String::as_str).collect();
    let (mut read, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for example in examples(&text) {
            let of_chart = example.get("config").filter(|config| config.is_object());
            let config = of_chart.unwrap_or(&example);
            let keys = config.as_object().into_iter().flatten().map(|(key, _)| key.as_str());
            if keys.clone().all(|key| !sections.contains(key)) {
                continue;
            }
            read += 1;
            if let Err(error) = ConfigFile::deserialize(config) {
                wrong.push(format!("{}: {:?}: {error}", page.display(), keys.collect::<Vec<_>>()));
            }
        }
    }
    assert!(read > 20, "{read} examples");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// The blocks of YAML, except those that are values of another chart.
fn examples(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let indent = line.len() - line.trim_start().len();
        if line.trim() != "```yaml" {
            continue;
        }
        let block: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != "```").collect();
        let block: Vec<&str> = block.iter().map(|line| line.get(indent..).unwrap_or_default()).collect();
        if !block[0].contains("values of JupyterHub") {
            found.extend(serde_saphyr::from_str::<Value>(&block.join("\n")).ok());
        }
    }
    found
}

/// Every page of the repository but the changelog, which has the commands of their time.
fn pages() -> Vec<PathBuf> {
    fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            if name.starts_with('.') || matches!(&*name, "target" | "node_modules" | "CHANGELOG.md") {
                continue;
            }
            if entry.file_type().unwrap().is_dir() {
                walk(&path, found);
            } else if name.ends_with(".md") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../.."), &mut found);
    assert!(found.len() > 20, "{found:?}");
    found
}

//! The files of a new policy: an example, and the SDK with the contract, in the version of this program.

use anyhow::bail;
use clap::ValueEnum;
use rust_embed::Embed;

use super::manifest::{MANIFEST, README, VENDOR_README};

/// The language of a policy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(super) enum Language {
    #[default]
    Rust,
    Python,
    /// JavaScript or TypeScript
    Javascript,
}

#[derive(Embed)]
#[folder = "../../sdk/rust"]
#[include = "Cargo.toml"]
#[include = "src/*"]
struct RustSdk;

/// The example that is copied into a new policy.
#[derive(Embed)]
#[folder = "../../plugins/sizes-by-group"]
#[include = "src/*"]
#[include = "config.yaml"]
#[include = "cases/*"]
struct RustExample;

#[derive(Embed)]
#[folder = "../../sdk/python-policy"]
#[include = "pyproject.toml"]
#[include = "README.md"]
#[include = "src/**/*"]
#[exclude = "**/__pycache__/*"]
struct PythonSdk;

#[derive(Embed)]
#[folder = "../../sdk/python-policy/template"]
#[exclude = "**/__pycache__/*"]
struct PythonTemplate;

#[derive(Embed)]
#[folder = "../../sdk/javascript"]
#[include = "package.json"]
#[include = "README.md"]
#[include = "bin/*"]
#[include = "src/*"]
#[include = "types/*"]
struct JavascriptSdk;

#[derive(Embed)]
#[folder = "../../sdk/javascript/template"]
#[exclude = "node_modules/*"]
struct JavascriptTemplate;

const CONTRACT: &str = include_str!("../../../../../wit/policy.wit");

/// A file of a project: its path and its text.
type File = (String, String);

/// The name of a crate, which is also that of the component.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CrateName(String);

impl CrateName {
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let fits = text.starts_with(|first: char| first.is_ascii_lowercase())
            && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
            && text.len() <= 60;
        if !fits {
            bail!(
                "{text:?} is no name of a policy; write lower-case letters, digits and `-`, such as sizes-by-group"
            );
        }
        Ok(Self(text.to_owned()))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns the files of a project, with their paths.
pub(super) fn files(name: &CrateName, language: Language) -> Vec<File> {
    let named = |text: &str| text.replace("NAME", name.as_str());
    match language {
        Language::Rust => {
            let sdk = "vendor/wasmspawner/sdk/rust/";
            let own = [
                ("Cargo.toml", named(MANIFEST)),
                ("README.md", named(README)),
                (".gitignore", "/target\n/*.wasm\n".to_owned()),
                ("vendor/wasmspawner/README.md", VENDOR_README.to_owned()),
                ("vendor/wasmspawner/wit/policy.wit", CONTRACT.to_owned()),
            ];
            let own = own.map(|(path, text)| (path.to_owned(), text));
            own.into_iter().chain(embedded::<RustExample>("")).chain(embedded::<RustSdk>(sdk)).collect()
        }
        Language::Python => {
            let sdk = embedded::<PythonSdk>("vendor/wasmspawner-policy/");
            from_template(embedded::<PythonTemplate>(""), named).chain(sdk).collect()
        }
        Language::Javascript => {
            let contract = ("vendor/wasmspawner-policy/policy.wit".to_owned(), CONTRACT.to_owned());
            let sdk = embedded::<JavascriptSdk>("vendor/wasmspawner-policy/");
            from_template(embedded::<JavascriptTemplate>(""), named).chain(sdk).chain([contract]).collect()
        }
    }
}

/// Returns the files of a folder, with `before` in front of their paths. All are text.
fn embedded<Folder: Embed>(before: &str) -> impl Iterator<Item = File> + use<'_, Folder> {
    Folder::iter().filter_map(move |path| {
        let text = String::from_utf8_lossy(&Folder::get(&path)?.data).into_owned();
        Some((format!("{before}{path}"), text))
    })
}

fn from_template(
    files: impl Iterator<Item = File>,
    named: impl Fn(&str) -> String,
) -> impl Iterator<Item = File> {
    files.map(move |(path, text)| match path.as_str() {
        // Git and cargo would apply a `.gitignore` in the template.
        "gitignore" => (".gitignore".to_owned(), text),
        _ => (path, named(&text)),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn repository() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    #[test]
    fn a_project_has_the_sdk_the_example_and_the_contract() {
        let name = CrateName::parse("mine").unwrap();
        let expected = [
            (
                Language::Rust,
                ["src/lib.rs", "vendor/wasmspawner/sdk/rust/src/lib.rs", "vendor/wasmspawner/wit/policy.wit"],
            ),
            (
                Language::Python,
                [
                    "policy.py",
                    "vendor/wasmspawner-policy/src/wasmspawner_policy/__init__.py",
                    "vendor/wasmspawner-policy/src/wasmspawner_policy/policy.wit",
                ],
            ),
            (
                Language::Javascript,
                [
                    "policy.js",
                    "vendor/wasmspawner-policy/src/index.js",
                    "vendor/wasmspawner-policy/policy.wit",
                ],
            ),
        ];
        for (language, paths) in expected {
            let files = files(&name, language);
            for path in paths.into_iter().chain([".gitignore", "README.md", "config.yaml"]) {
                let found = files.iter().filter(|(known, _)| known == path).count();
                assert_eq!(found, 1, "{path} of {language:?}");
            }
            let contract = files.iter().find(|(path, _)| path == paths[2]).unwrap();
            assert_eq!(contract.1, CONTRACT, "{language:?}");
            assert!(files.iter().any(|(path, _)| path.starts_with("cases/")), "{language:?}");
            assert!(files.iter().all(|(path, _)| !path.contains("__pycache__")), "{language:?}");
            let distinct: BTreeSet<_> = files.iter().map(|(path, _)| path).collect();
            assert_eq!(distinct.len(), files.len(), "{language:?}");
        }
    }

    #[test]
    fn the_versions_are_those_of_this_repository() {
        let here = std::fs::read_to_string(repository().join("Cargo.toml")).unwrap();
        let (_, dependencies) = MANIFEST.split_once("[workspace.dependencies]").unwrap();
        for line in dependencies.lines().filter(|line| line.contains(" = ")) {
            assert!(here.lines().any(|known| known.starts_with(line)), "{line}");
        }
    }

    #[test]
    fn a_name_is_that_of_a_crate() {
        assert_eq!(CrateName::parse("sizes-2").unwrap().as_str(), "sizes-2");
        for wrong in ["", "2sizes", "Sizes", "a b", "../a", "a_b"] {
            assert!(CrateName::parse(wrong).unwrap_err().to_string().contains("is no name"), "{wrong}");
        }
    }
}

//! The files of a new policy: an example, and the SDK with the contract, of the version of this program.

use anyhow::bail;

/// The files of the SDK, below `vendor/wasmspawner/sdk/rust`.
const SDK: [(&str, &str); 24] = [
    ("Cargo.toml", include_str!("../../../../../sdk/rust/Cargo.toml")),
    ("src/bindings.rs", include_str!("../../../../../sdk/rust/src/bindings.rs")),
    ("src/clock_stand_in.rs", include_str!("../../../../../sdk/rust/src/clock_stand_in.rs")),
    ("src/component.rs", include_str!("../../../../../sdk/rust/src/component.rs")),
    ("src/config.rs", include_str!("../../../../../sdk/rust/src/config.rs")),
    ("src/data_stand_in.rs", include_str!("../../../../../sdk/rust/src/data_stand_in.rs")),
    ("src/form.rs", include_str!("../../../../../sdk/rust/src/form.rs")),
    ("src/hooks.rs", include_str!("../../../../../sdk/rust/src/hooks.rs")),
    ("src/host.rs", include_str!("../../../../../sdk/rust/src/host.rs")),
    ("src/images.rs", include_str!("../../../../../sdk/rust/src/images.rs")),
    ("src/images_stand_in.rs", include_str!("../../../../../sdk/rust/src/images_stand_in.rs")),
    ("src/inject.rs", include_str!("../../../../../sdk/rust/src/inject.rs")),
    ("src/lab_server.rs", include_str!("../../../../../sdk/rust/src/lab_server.rs")),
    ("src/lab_stand_in.rs", include_str!("../../../../../sdk/rust/src/lab_stand_in.rs")),
    ("src/lib.rs", include_str!("../../../../../sdk/rust/src/lib.rs")),
    ("src/options.rs", include_str!("../../../../../sdk/rust/src/options.rs")),
    ("src/pod.rs", include_str!("../../../../../sdk/rust/src/pod.rs")),
    ("src/quantity.rs", include_str!("../../../../../sdk/rust/src/quantity.rs")),
    ("src/quota.rs", include_str!("../../../../../sdk/rust/src/quota.rs")),
    ("src/subject_stand_in.rs", include_str!("../../../../../sdk/rust/src/subject_stand_in.rs")),
    ("src/submission.rs", include_str!("../../../../../sdk/rust/src/submission.rs")),
    ("src/testing.rs", include_str!("../../../../../sdk/rust/src/testing.rs")),
    ("src/user.rs", include_str!("../../../../../sdk/rust/src/user.rs")),
    ("src/weekly_window.rs", include_str!("../../../../../sdk/rust/src/weekly_window.rs")),
];
const CONTRACT: &str = include_str!("../../../../../wit/policy.wit");

/// The example of which a new policy is a copy.
const EXAMPLE: [(&str, &str); 5] = [
    ("src/lib.rs", include_str!("../../../../../plugins/sizes-by-group/src/lib.rs")),
    ("config.yaml", include_str!("../../../../../plugins/sizes-by-group/config.yaml")),
    (
        "cases/a-guest-gets-no-large-lab.yaml",
        include_str!("../../../../../plugins/sizes-by-group/cases/a-guest-gets-no-large-lab.yaml"),
    ),
    (
        "cases/a-guest-sees-the-small-size.yaml",
        include_str!("../../../../../plugins/sizes-by-group/cases/a-guest-sees-the-small-size.yaml"),
    ),
    (
        "cases/staff-get-large-labs.yaml",
        include_str!("../../../../../plugins/sizes-by-group/cases/staff-get-large-labs.yaml"),
    ),
];

/// The manifest, which is also the workspace of the SDK. The versions are those that the SDK is tested with.
const MANIFEST: &str = r#"[package]
name = "NAME"
version = "0.1.0"
edition = "2024"

[lib]
crate-type = ["cdylib", "rlib"] # the component; and a library, for tests

[dependencies]
wasmspawner-sdk = { path = "vendor/wasmspawner/sdk/rust" }

[dev-dependencies]
serde_json.workspace = true

[profile.release] # small, and fast to load
opt-level = 3
lto = true
codegen-units = 1
strip = true
panic = "abort"

# For the SDK.
[workspace]
members = ["vendor/wasmspawner/sdk/rust"]
resolver = "3"

[workspace.package]
version = "0.1.0"
edition = "2024"
rust-version = "1.95"
license = "Apache-2.0"
publish = false

[workspace.dependencies]
serde = { version = "1.0.229", features = ["derive"] }
serde_json = "1.0"
wit-bindgen = { version = "0.61", default-features = false, features = ["macros", "realloc"] }

[workspace.lints.rust]
unsafe_code = "deny"
"#;

const README: &str = "\
# NAME

A policy for [wasmspawner](vendor/wasmspawner/README.md), in Rust: `src/lib.rs` offers sizes of labs, some of them only to the members of groups.

```sh
cargo test                                              # its unit tests
wasmspawner policy build .                              # makes NAME.wasm
wasmspawner policy test NAME.wasm cases --config config.yaml
wasmspawner policy run NAME.wasm form.render --config config.yaml --user ada --group staff
```

`--update` of `policy test` writes the answers into the cases. To use the policy, name it in the service's configuration:

```yaml
policies:
  - name: NAME
    path: NAME.wasm
    config:
      sizes: [{name: small, cpu: 1, memory: 2Gi}, {name: large, cpu: 8, memory: 32Gi, groups: [staff]}]
```

`vendor/wasmspawner` is the SDK and the contract (`wit/policy.wit`), which documents every hook. `wasmspawner policy new` of a later
version brings a later SDK.
";

const VENDOR_README: &str = "\
# The SDK of wasmspawner

`sdk/rust` is the crate `wasmspawner-sdk`, and `wit` the contract between policies and the service. Both are copies, which
`wasmspawner policy new` has made; do not change them.
";

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

/// The files of a project, with their paths.
pub(super) fn files(name: &CrateName) -> Vec<(String, String)> {
    let named = |text: &str| text.replace("NAME", name.as_str());
    let own = [
        ("Cargo.toml", named(MANIFEST)),
        ("README.md", named(README)),
        (".gitignore", "/target\n/*.wasm\n".to_owned()),
        ("vendor/wasmspawner/README.md", VENDOR_README.to_owned()),
        ("vendor/wasmspawner/wit/policy.wit", CONTRACT.to_owned()),
    ];
    let own = own.into_iter().map(|(path, text)| (path.to_owned(), text));
    let example = EXAMPLE.into_iter().map(|(path, text)| (path.to_owned(), text.to_owned()));
    let sdk =
        SDK.into_iter().map(|(path, text)| (format!("vendor/wasmspawner/sdk/rust/{path}"), text.to_owned()));
    own.chain(example).chain(sdk).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    fn repository() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
    }

    fn names(folder: &str) -> BTreeSet<String> {
        let entries = repository().join(folder).read_dir().unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn no_file_of_the_sdk_and_of_the_example_is_forgotten() {
        let below = |files: &[(&str, &str)], folder: &str| -> BTreeSet<String> {
            files.iter().filter_map(|(path, _)| path.strip_prefix(folder)).map(str::to_owned).collect()
        };
        assert_eq!(below(&SDK, "src/"), names("sdk/rust/src"));
        assert_eq!(below(&EXAMPLE, "cases/"), names("plugins/sizes-by-group/cases"));
        assert_eq!(below(&EXAMPLE, "src/"), names("plugins/sizes-by-group/src"));
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

//! The texts of a new Rust project that differ from those of the example.

/// The manifest, which is also the workspace of the SDK. The SDK is tested with these versions.
pub(super) const MANIFEST: &str = r#"[package]
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
regex-lite = "0.1"
serde = { version = "1.0.229", features = ["derive"] }
serde_json = "1.0"
wit-bindgen = { version = "0.61", default-features = false, features = ["macros", "realloc"] }

[workspace.lints.rust]
unsafe_code = "deny"
"#;

pub(super) const README: &str = "\
# NAME

A policy for [wasmspawner](vendor/wasmspawner/README.md), in Rust: `src/lib.rs` offers sizes of labs, some of them only to the members of groups.

```sh
cargo test                                              # its unit tests
wasmspawner policy build .                              # makes NAME.wasm
wasmspawner policy test NAME.wasm cases --config config.yaml
wasmspawner policy dev .                                # both, whenever a file changes
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

pub(super) const VENDOR_README: &str = "\
# The SDK of wasmspawner

`sdk/rust` is the crate `wasmspawner-sdk`, and `wit` the contract between policies and the service. Both are copies, which
`wasmspawner policy new` has made; do not change them.
";

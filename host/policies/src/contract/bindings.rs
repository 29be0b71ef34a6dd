//! The host's bindings for `wasmspawner:policy@0.1.0`, generated from `wit/`.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "full-policy",
    exports: { default: async },
});

/// The shared types of all hooks.
pub(super) use wasmspawner::policy::types;

/// The imports of a policy.
pub(super) use wasmspawner::policy::host;

/// The hooks, one module each.
pub(super) use exports::wasmspawner::policy as hooks;

/// The version of the package.
pub(super) const VERSION: &str = "0.1.0";

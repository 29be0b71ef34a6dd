//! Host bindings generated from `wit/`, private to this module.

wasmtime::component::bindgen!({
    path: "../../wit",
    world: "full-policy",
    exports: { default: async },
});

/// The shared types of all hooks.
pub(super) use wasmspawner::policy::types;

/// The imports of a policy.
pub(super) use wasmspawner::policy::host;

/// The hooks, a module each.
pub(super) use exports::wasmspawner::policy as hooks;

//! The API group of the service's custom resources.

/// The API group.
pub const GROUP: &str = "wasmspawner.io";
/// The only version so far.
pub const VERSION: &str = "v1alpha1";
/// Group and version, as an object states them.
pub const API_VERSION: &str = "wasmspawner.io/v1alpha1";

//! The labels and annotations by which an object says whose it is.

/// Label: the program that made the object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY_VALUE: &str = "wasmspawner";
/// Label: which installation of the service made it.
pub const INSTANCE_LABEL: &str = "wasmspawner.io/instance";
/// Label: the user's slug.
pub const USER_LABEL: &str = "wasmspawner.io/user";
/// Label: the server's slug; empty for the default server.
pub const SERVER_LABEL: &str = "wasmspawner.io/server";
/// Label: the spawn that made it.
pub const JOB_ID_LABEL: &str = "wasmspawner.io/job-id";
/// Label: the uid of the record that the object belongs to. The service believes an object to be a lab's when it stands
/// where the lab's record says, and carries this.
pub const SPAWN_LABEL: &str = "wasmspawner.io/spawn";
/// Label: what an object is for.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// The value of [`COMPONENT_LABEL`] of the `ConfigMap` that holds a lab's environment.
pub const ENVIRONMENT: &str = "environment";
/// Annotation: the raw username.
pub const USERNAME_ANNOTATION: &str = "wasmspawner.io/username";
/// Annotation: the raw server name.
pub const SERVERNAME_ANNOTATION: &str = "wasmspawner.io/servername";
/// Annotation of the namespace: what was last begun in it.
pub const OPERATION_ANNOTATION: &str = "wasmspawner.io/operation";
/// The value of [`OPERATION_ANNOTATION`] after a spawn began.
pub const OPERATION_SPAWN: &str = "spawn";
/// Annotation of the namespace: `sha256:` of what the lab was to be.
pub const SPEC_DIGEST_ANNOTATION: &str = "wasmspawner.io/spec-digest";

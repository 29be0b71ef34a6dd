//! The labels and annotations that identify the owner of an object.

use std::collections::BTreeMap;

use crate::names::LabelValue;

/// Label: the program that created the object.
pub const MANAGED_BY_LABEL: &str = "app.kubernetes.io/managed-by";
/// The value of [`MANAGED_BY_LABEL`].
pub const MANAGED_BY_VALUE: &str = "wasmspawner";
/// Label: the installation of the service that created the object.
pub const INSTANCE_LABEL: &str = "wasmspawner.io/instance";
/// Label: the user's slug.
pub const USER_LABEL: &str = "wasmspawner.io/user";
/// Label: the server's slug; empty for the default server.
pub const SERVER_LABEL: &str = "wasmspawner.io/server";
/// Label: the spawn that created the object.
pub const JOB_ID_LABEL: &str = "wasmspawner.io/job-id";
/// Label: the uid of the record that the object belongs to. The service treats an object as a lab's only if the object
/// is at the place that the lab's record names and carries this label.
pub const SPAWN_LABEL: &str = "wasmspawner.io/spawn";
/// Label: the purpose of an object.
pub const COMPONENT_LABEL: &str = "app.kubernetes.io/component";
/// The value of [`COMPONENT_LABEL`] of the `ConfigMap` that holds a lab's environment.
pub const LAB_ENV: &str = "environment";
/// Label of the pod of an administrator's lab that has less than the whole security baseline; its value is `true`.
pub const LIFTED_LABEL: &str = "wasmspawner.io/lifted";
/// The value of [`COMPONENT_LABEL`] of the pod of a kernel.
pub const KERNEL: &str = "kernel";
/// The value of [`COMPONENT_LABEL`] of the pod of a Dask pool's scheduler.
pub const DASK_SCHEDULER: &str = "dask-scheduler";
/// The value of [`COMPONENT_LABEL`] of the pod of a Dask pool's worker.
pub const DASK_WORKER: &str = "dask-worker";
/// Label of a worker: the name of its group, if its pool has several.
pub const DASK_GROUP_LABEL: &str = "wasmspawner.io/dask-group";
/// Label of a namespace: the level of Pod Security that its pods have to meet.
pub(crate) const ENFORCE_LABEL: &str = "pod-security.kubernetes.io/enforce";
/// Annotation: the raw username.
pub const USERNAME_ANNOTATION: &str = "wasmspawner.io/username";
/// Annotation: the raw server name.
pub const SERVERNAME_ANNOTATION: &str = "wasmspawner.io/servername";
/// Annotation of the namespace: the operation that began in it last.
pub const OPERATION_ANNOTATION: &str = "wasmspawner.io/operation";
/// Annotation: a mark by which the service recognizes a retained namespace that it has just created.
pub const MADE_ANNOTATION: &str = "wasmspawner.io/made";
/// Annotation of a namespace that may be kept for the next lab of its server: digest (`sha256:...`) of the labels and
/// annotations that it has, except those that differ in every spawn.
pub const KEPT_ANNOTATION: &str = "wasmspawner.io/kept-as";
/// The value of [`OPERATION_ANNOTATION`] after a spawn began.
pub const OPERATION_SPAWN: &str = "spawn";
/// Annotation of the lab's Secret: digest (`sha256:...`) of the lab's other objects.
pub(crate) const DECISION_ANNOTATION: &str = "wasmspawner.io/decision";
/// Annotation of the namespace: digest (`sha256:...`) of the requested lab.
pub const SPEC_DIGEST_ANNOTATION: &str = "wasmspawner.io/spec-digest";

/// Returns the labels of every object of an installation of the service.
pub fn of_installation(instance: &LabelValue) -> BTreeMap<String, String> {
    BTreeMap::from([
        (MANAGED_BY_LABEL.to_owned(), MANAGED_BY_VALUE.to_owned()),
        (INSTANCE_LABEL.to_owned(), instance.to_string()),
    ])
}

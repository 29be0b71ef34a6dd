//! The programs that the service puts into the pods of what labs start. They are files of the Python package, which tests
//! them.

use wasmspawner_core::dask::PoolPrograms;

/// Starts a kernel's process in its pod.
pub(crate) const KERNEL_LAUNCHER: &str =
    include_str!("../../../../sdk/python/src/wasmspawner/kernel_launcher.py");

/// How the other programs talk to the service.
pub(crate) const SERVICE_LINK: &str = include_str!("../../../../sdk/python/src/wasmspawner/service_link.py");

/// What the pods of a Dask pool run.
pub(crate) const DASK: PoolPrograms = PoolPrograms {
    pod: include_str!("../../../../sdk/python/src/wasmspawner/dask_pod.py"),
    keeper: include_str!("../../../../sdk/python/src/wasmspawner/dask_keeper.py"),
    link: SERVICE_LINK,
    tls: include_str!("../../../../sdk/python/src/wasmspawner/dask_tls.py"),
};

//! The programs that the service puts into the pods of kernels and Dask pools. They are files of the Python package,
//! where they are tested.

use wasmspawner_core::children::dask::PoolPrograms;

/// Starts a kernel's process in its pod.
pub(crate) const KERNEL_LAUNCHER: &str =
    include_str!("../../../../sdk/python/src/wasmspawner/kernel_launcher.py");

/// The module by which the other programs talk to the service.
pub(crate) const SERVICE_LINK: &str = include_str!("../../../../sdk/python/src/wasmspawner/service_link.py");

/// The programs in the pods of a Dask pool.
pub(crate) const DASK: PoolPrograms = PoolPrograms {
    pod: include_str!("../../../../sdk/python/src/wasmspawner/dask_pod.py"),
    keeper: include_str!("../../../../sdk/python/src/wasmspawner/dask_keeper.py"),
    link: SERVICE_LINK,
    tls: include_str!("../../../../sdk/python/src/wasmspawner/dask_tls.py"),
};

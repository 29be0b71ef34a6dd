//! The children of a lab: kernels and Dask pools.

pub mod dask;
pub mod kernel;

//! The sources of components: files, registries, and the cache of compiled ones.

pub(crate) mod artifact;
pub(crate) mod cache;
pub(crate) mod component_source;
pub(crate) mod oci_source;
pub(crate) mod spec;
pub(crate) mod watched_files;

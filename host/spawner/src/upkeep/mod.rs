//! The background tasks: recovery at the start, sweeps, labs that the Hub has forgotten, reloads.

pub(crate) mod environments;
pub(crate) mod forgotten;
pub(crate) mod leftovers;
pub(crate) mod retained;
pub(crate) mod rules;
pub(crate) mod service;
pub(crate) mod sweep;

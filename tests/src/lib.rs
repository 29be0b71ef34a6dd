//! Shared code of the black-box tests.

pub mod api;
pub mod events;
pub mod guests;
pub mod hub;
pub mod kubernetes;
pub mod provider;
pub mod proxy;
pub mod service;

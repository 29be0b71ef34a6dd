//! Shared code of the black-box tests.

pub mod api;
pub mod collector;
pub mod compiled_policies;
pub mod events;
pub mod guests;
pub mod hub;
pub mod issuer;
pub mod kubernetes;
pub mod nats;
pub mod provider;
pub mod proxy;
pub mod registry;
pub mod service;
pub mod signing_key;
pub mod waiting;

//! The configuration: raw sections as they are written, validated into what the service works with. A file a section.

pub mod auth;
mod base_url;
mod invalid;
pub mod lab;
mod peers;

pub use base_url::BaseUrl;
pub use invalid::InvalidSetting;
pub use peers::PeerRange;

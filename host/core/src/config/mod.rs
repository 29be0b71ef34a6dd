//! The configuration: one file per section, each with the section as it is written and its validated form.

pub mod auth;
mod base_url;
mod changes;
mod dask;
mod embedded;
mod environments;
mod http;
mod hub;
mod images;
mod invalid;
mod kubernetes;
pub mod lab;
mod lab_namespaces;
mod lab_routes;
mod limits;
mod peers;
mod per_user;
mod policies;
mod prepull;
mod registries;
mod root;
mod span;
mod telemetry;
mod warnings;

pub use base_url::BaseUrl;
pub use changes::ConfigChanges;
pub use dask::DaskConfig;
pub use embedded::{EmbeddedConfig, ImageMapping, PodCommand, RuntimeKind, SimulatedStages};
pub use environments::{EnvironmentChoice, EnvironmentsConfig};
pub use http::{HttpConfig, TlsConfig};
pub use hub::{ForgottenConfig, Hub, HubConfig};
pub use images::{ImageNodes, ImageRepository, ImagesConfig, UnpinnedImages};
pub use invalid::InvalidSetting;
pub use kubernetes::{KubernetesConfig, NamespaceReclaim};
pub use lab_namespaces::LabNamespaces;
pub use lab_routes::{LabRoutes, RouteFields, RouteKind, RouteTemplate};
pub use limits::LimitsConfig;
pub use peers::PeerRange;
pub use per_user::PerUserLimits;
pub use policies::{CallLimits, OnFailure, PolicyConfig};
pub use prepull::PrepullConfig;
pub use registries::RegistriesConfig;
pub use root::{Config, ConfigFile};
pub use telemetry::{LogFormat, OtlpConfig, SampleRatio, TelemetryConfig};

use span::check_span;

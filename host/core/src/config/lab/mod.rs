//! The section `lab`: what every lab of this site has, whatever the policies decide.

mod argo_cd;
mod certificate;
mod config;
mod files;
mod fs_group;
mod network_policy;
mod readiness_probe;
mod reserved_env;
mod section;
mod service;
mod site_secret;
mod user_files;

pub use argo_cd::ArgoCd;
pub use certificate::{CertificateIssuer, LabCertificate};
pub use config::LabConfig;
pub use fs_group::{FsGroup, FsGroupKind};
pub use network_policy::{EgressRule, NetworkPeer, NetworkPolicyConfig, NetworkPort, Protocol};
pub use readiness_probe::ReadinessProbe;
pub use reserved_env::ReservedEnv;
pub use section::{ImagePullPolicy, LabSection, MaxTimeLimits, SecurityLifts};
pub use service::{Entrance, LabService};
pub use site_secret::{ENV_KEY_PREFIX, REQUEST_KEY, SecretKey, SiteSecret, SiteSecretData, TOKEN_KEY};
pub use user_files::UserFiles;

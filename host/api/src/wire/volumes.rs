//! The answers about the volume claims of a server.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::names::lab::LabKey;
use wasmspawner_core::policy::ClaimReclaim;
use wasmspawner_core::record::volumes::{ClaimUse, Kept, Release, VolumeRecord};

/// The volume claims that a server has used.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Volumes {
    username: String,
    /// The name of the user's server; empty for the default server.
    server: String,
    /// Every claim that the server has used, sorted.
    claims: Vec<Claim>,
}

/// A volume claim.
#[derive(Debug, Serialize, ToSchema)]
struct Claim {
    namespace: String,
    name: String,
    /// What happens to the claim when the last server that used it is deleted.
    on_server_deletion: OnServerDeletion,
    /// True for the server's own claim: the one whose name is `{pvc_name}` for this server.
    own: bool,
}

/// What happens to a claim when the last server that used it is deleted.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OnServerDeletion {
    Retain,
    Delete,
}

/// What was done with a server's volume claims.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReleasedVolumes {
    /// The claims that are being deleted. Kubernetes finishes the deletion when no pod uses them any more.
    deleted: Vec<ReleasedClaim>,
    /// The claims that are kept.
    kept: Vec<KeptClaim>,
}

/// A claim that is being deleted.
#[derive(Debug, Serialize, ToSchema)]
struct ReleasedClaim {
    namespace: String,
    name: String,
}

/// A claim that is kept.
#[derive(Debug, Serialize, ToSchema)]
struct KeptClaim {
    namespace: String,
    name: String,
    /// Why it is kept.
    reason: KeptBecause,
    /// The other server that uses the claim, as `username` or `username/server`.
    used_by: Option<String>,
}

/// Why a claim is kept. `retained`: no policy wants it deleted. `shared`: another server uses it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum KeptBecause {
    Retained,
    Shared,
}

impl Volumes {
    pub(crate) fn new(key: &LabKey, record: Option<&VolumeRecord>) -> Self {
        let claims = record.into_iter().flat_map(|record| {
            record.claims.iter().map(|claim| Claim {
                namespace: claim.namespace.to_string(),
                name: claim.name.to_string(),
                on_server_deletion: match claim.reclaim {
                    ClaimReclaim::Retain => OnServerDeletion::Retain,
                    ClaimReclaim::Delete => OnServerDeletion::Delete,
                },
                own: claim.namespace == record.namespace && claim.name == record.pvc,
            })
        });
        Self { username: key.user.to_string(), server: key.server.to_string(), claims: claims.collect() }
    }
}

impl From<Release> for ReleasedVolumes {
    fn from(release: Release) -> Self {
        let deleted = |claim: ClaimUse| ReleasedClaim {
            namespace: claim.namespace.to_string(),
            name: claim.name.to_string(),
        };
        let kept = |(claim, kept): (ClaimUse, Kept)| {
            let (reason, used_by) = match kept {
                Kept::Retained => (KeptBecause::Retained, None),
                Kept::UsedBy(other) => (KeptBecause::Shared, Some(other.to_string())),
            };
            KeptClaim {
                namespace: claim.namespace.to_string(),
                name: claim.name.to_string(),
                reason,
                used_by,
            }
        };
        Self {
            deleted: release.delete.into_iter().map(deleted).collect(),
            kept: release.keep.into_iter().map(kept).collect(),
        }
    }
}

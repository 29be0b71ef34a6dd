//! The volumes of a server.

use serde::Serialize;
use utoipa::ToSchema;
use wasmspawner_core::lab::LabKey;
use wasmspawner_core::policy::ClaimReclaim;
use wasmspawner_core::volumes::{ClaimUse, Kept, Release, VolumeRecord};

/// The volume claims that a server has used.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Volumes {
    username: String,
    /// Empty for the default server.
    server: String,
    /// Every claim that the server has used, sorted.
    claims: Vec<Claim>,
}

/// A volume claim.
#[derive(Debug, Serialize, ToSchema)]
struct Claim {
    namespace: String,
    name: String,
    /// What becomes of it with the last server that used it.
    on_server_deletion: OnServerDeletion,
    /// The server's own claim: what `{pvc_name}` is for it.
    own: bool,
}

/// What becomes of a claim with the last server that used it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum OnServerDeletion {
    Retain,
    Delete,
}

/// What became of a server's volume claims.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct ReleasedVolumes {
    /// Being deleted: Kubernetes does it when no pod uses them any more.
    deleted: Vec<ReleasedClaim>,
    /// Left alone.
    kept: Vec<KeptClaim>,
}

/// A claim that is being deleted.
#[derive(Debug, Serialize, ToSchema)]
struct ReleasedClaim {
    namespace: String,
    name: String,
}

/// A claim that is left alone.
#[derive(Debug, Serialize, ToSchema)]
struct KeptClaim {
    namespace: String,
    name: String,
    /// Why it is left alone.
    reason: KeptBecause,
    /// The other server, as `username` or `username/server`.
    used_by: Option<String>,
}

/// Why a claim is left alone. `retained`: no policy wants it deleted. `shared`: another server uses it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum KeptBecause {
    Retained,
    Shared,
}

impl Volumes {
    pub(in crate::http) fn new(key: &LabKey, record: Option<&VolumeRecord>) -> Self {
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

//! Notes about a creation that is under way, for the lab's user.

/// A note about a volume claim of a lab whose objects are being created.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CreationNote {
    /// The creation waits until an old claim of this name is deleted.
    WaitsForClaim {
        /// The name of the claim.
        name: String,
        /// What keeps the claim, if that is known.
        kept_by: Option<String>,
    },
    /// The claim of this name, for which the creation has waited, is gone.
    ClaimGone(String),
    /// The claim is being enlarged.
    ClaimGrows(ClaimSizes),
    /// The claim keeps its size, for this reason.
    ClaimNotGrown(ClaimSizes, String),
}

/// A claim that is smaller than its lab asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimSizes {
    /// The name of the claim.
    pub name: String,
    /// The size that the claim has, as Kubernetes writes it.
    pub from: String,
    /// The size that the lab asks for.
    pub to: String,
}

/// Says that the deletion of an old claim does not end. `kept_by` says what keeps the claim.
pub fn claim_still_being_deleted(name: &str, kept_by: Option<&str>) -> String {
    let kept_by = kept_by.map(|kept_by| format!(" ({kept_by})")).unwrap_or_default();
    format!("the old volume {name} is still being deleted{kept_by}")
}

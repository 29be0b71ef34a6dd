use super::{Customization, Grants, LabServer};

/// The answers of one policy of the chain to `build-pod` and `lab-server`.
#[derive(Clone, Debug)]
pub struct ChainAnswer {
    /// The policy's name.
    pub policy: String,
    /// What the operator has granted the policy.
    pub grants: Grants,
    /// The policy's answer to `build-pod`.
    pub customization: Customization,
    /// The policy's answer to `lab-server`.
    pub server: LabServer,
}

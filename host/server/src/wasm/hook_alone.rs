//! Hooks that the service asks together, each alone: authors try and measure one at a time.

use wasmspawner_core::policy::{Customization, LabRequest, LabServer};

use super::chain::Policies;
use super::errors::CallError;

impl Policies {
    /// What the first policy that has `build-pod` asks for in the pod; `None` if no policy has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn build_pod(&self, request: &LabRequest) -> Result<Option<Customization>, CallError> {
        for link in self.live.load_full().iter() {
            if let Some(answer) =
                link.ask(&self.engine, |policy| policy.customize(&self.engine, request)).await
            {
                return answer.map(Some);
            }
        }
        Ok(None)
    }

    /// How the lab's program is reached, according to the first policy that has `lab-server`; `None` if no policy has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn lab_server(&self, request: &LabRequest) -> Result<Option<LabServer>, CallError> {
        for link in self.live.load_full().iter() {
            if let Some(answer) =
                link.ask(&self.engine, |policy| policy.lab_server(&self.engine, request)).await
            {
                return answer.map(Some);
            }
        }
        Ok(None)
    }
}

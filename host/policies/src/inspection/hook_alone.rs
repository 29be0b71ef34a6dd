//! Calls hooks one at a time that the service calls together, because authors try and measure them one at a time.

use wasmspawner_core::policy::{Customization, LabRequest, LabServer};

use crate::chain::Policies;
use crate::chain::loader::Chain;
use crate::engine::Engine;
use crate::errors::CallError;
use crate::policy::Policy;

impl Policies {
    /// Returns the requests for the pod of the first policy that has `build-pod`, or `None` if no policy has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn build_pod(&self, request: &LabRequest) -> Result<Option<Customization>, CallError> {
        let chain = self.live.load_full();
        first_answer(&chain, &self.engine, |policy| policy.customize(&self.engine, request)).await
    }

    /// Returns how the lab's program is reached, from the first policy that has `lab-server`, or `None` if no policy
    /// has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn lab_server(&self, request: &LabRequest) -> Result<Option<LabServer>, CallError> {
        let chain = self.live.load_full();
        first_answer(&chain, &self.engine, |policy| policy.lab_server(&self.engine, request)).await
    }
}

/// Returns the answer of the first policy that has the hook.
async fn first_answer<'a, T, F>(
    chain: &'a Chain,
    engine: &Engine,
    call: impl Fn(&'a Policy) -> F,
) -> Result<Option<T>, CallError>
where
    F: Future<Output = Option<Result<T, CallError>>>,
{
    for link in chain {
        if let Some(answer) = link.ask(engine, &call).await {
            return answer.map(Some);
        }
    }
    Ok(None)
}

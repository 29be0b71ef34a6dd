//! Hooks that the service asks together, each alone: authors try and measure one at a time.

use wasmspawner_core::policy::{Customization, LabRequest, LabServer};

use crate::chain::Policies;
use crate::chain::loader::Chain;
use crate::engine::Engine;
use crate::errors::CallError;
use crate::policy::Policy;

impl Policies {
    /// What the first policy that has `build-pod` asks for in the pod; `None` if no policy has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn build_pod(&self, request: &LabRequest) -> Result<Option<Customization>, CallError> {
        let chain = self.live.load_full();
        first_answer(&chain, &self.engine, |policy| policy.customize(&self.engine, request)).await
    }

    /// How the lab's program is reached, according to the first policy that has `lab-server`; `None` if no policy has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn lab_server(&self, request: &LabRequest) -> Result<Option<LabServer>, CallError> {
        let chain = self.live.load_full();
        first_answer(&chain, &self.engine, |policy| policy.lab_server(&self.engine, request)).await
    }
}

/// The answer of the first policy that has the hook.
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

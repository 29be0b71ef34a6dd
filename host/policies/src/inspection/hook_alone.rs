//! Calls hooks one at a time that the service calls together, because authors try and measure them one at a time.

use std::sync::Arc;

use wasmspawner_core::policy::{Customization, LabRequest, LabServer, TextFile};

use crate::chain::Policies;
use crate::contract::hooks::Question;
use crate::contract::hooks::build_pod::BuildPod;
use crate::contract::hooks::lab_files::FilesOfLab;
use crate::contract::hooks::lab_server::ServeLab;
use crate::errors::CallError;

impl Policies {
    /// Returns the requests for the pod of the first policy that has `build-pod`, or `None` if no policy has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn build_pod(&self, request: &LabRequest) -> Result<Option<Customization>, CallError> {
        self.first_answer(&BuildPod(Arc::new(request.clone()))).await
    }

    /// Returns how the lab's program is reached, from the first policy that has `lab-server`, or `None` if no policy
    /// has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn lab_server(&self, request: &LabRequest) -> Result<Option<LabServer>, CallError> {
        self.first_answer(&ServeLab(Arc::new(request.clone()))).await
    }

    /// Returns the text files of a lab from the first policy that has `lab-files`, or `None` if no policy has it.
    ///
    /// # Errors
    ///
    /// [`CallError`], which names the policy.
    pub async fn lab_files(&self, request: &LabRequest) -> Result<Option<Vec<TextFile>>, CallError> {
        self.first_answer(&FilesOfLab(Arc::new(request.clone()))).await
    }

    /// Returns the answer of the first policy that has the hook.
    async fn first_answer<Q: Question>(&self, question: &Q) -> Result<Option<Q::Answer>, CallError> {
        for link in self.live.load_full().to_ask::<Q>()? {
            if let Some(answer) = link.ask(&self.engine, |policy| policy.ask(&self.engine, question)).await {
                return answer.map(Some);
            }
        }
        Ok(None)
    }
}

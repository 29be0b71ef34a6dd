//! Checks the definition of the custom resource `Spawn` that a cluster has.

use kube::api::{DynamicObject, PostParams, Request};
use serde_json::Value;
use wasmspawner_core::record::complete_records;

use super::stored::{malformed, new_object};
use super::{DefinitionError, FIELD_MANAGER, SpawnRecords, soon};
use crate::k8s::{KubernetesError, StatusReason, retrying};

/// The name of the records that are sent for the check, and never stored.
const NAME: &str = "check-of-the-definition";

/// Begins what Kubernetes says about an object with an unknown field, when it is asked to refuse those.
const STRICT: &str = "strict decoding error";

/// Who refuses to take a record.
#[derive(Debug, PartialEq, Eq)]
enum RefusedBy {
    /// The definition.
    Definition,
    /// A quota, or something that the site has added: the record is nobody's, so it need not please them.
    Others,
}

fn refusal(reason: &StatusReason, message: &str) -> RefusedBy {
    let by_schema = *reason == StatusReason::Invalid && !message.to_lowercase().contains("admission");
    if by_schema || message.contains(STRICT) { RefusedBy::Definition } else { RefusedBy::Others }
}

impl SpawnRecords {
    /// Checks that the cluster keeps every field and enum value that this version of the service writes, by a dry run. An
    /// API server silently drops the fields that its definition lacks: the service would write them again and again, and
    /// not find them after a restart.
    pub async fn check_definition(&self) -> Result<(), DefinitionError> {
        for record in complete_records() {
            match self.dry_run(record).await {
                Err(KubernetesError::Refused { reason, message, .. }) => match refusal(&reason, &message) {
                    RefusedBy::Definition => return Err(DefinitionError::OfAnotherVersion(message)),
                    RefusedBy::Others => {
                        tracing::warn!(
                            reason = reason.as_str(),
                            message,
                            "whether the definition of Spawn in the cluster is that of this version is not known: the API server refuses to try out a record"
                        );
                        return Ok(());
                    }
                },
                answer => answer?,
            }
        }
        Ok(())
    }

    /// Asks the API server to create this record without storing it, and to refuse fields that it does not know.
    async fn dry_run(&self, data: Value) -> Result<(), KubernetesError> {
        let object = new_object(NAME, &self.instance, data);
        let params = PostParams { dry_run: true, field_manager: Some(FIELD_MANAGER.to_owned()) };
        let body = serde_json::to_vec(&object).map_err(malformed)?;
        let client = self.api.clone().into_client();
        let send = || async {
            let mut request = Request::new(self.api.resource_url())
                .create(&params, body.clone())
                .map_err(kube::Error::BuildRequest)?;
            let strict = format!("{}&fieldValidation=Strict", request.uri());
            *request.uri_mut() =
                strict.parse().map_err(|error| kube::Error::HttpError(http::Error::from(error)))?;
            client.request::<DynamicObject>(request).await
        };
        retrying(&self.retry_policy(soon()), "try out a Spawn", send).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_definition_keeps_the_service_from_its_labs() {
        for (reason, message, expected) in [
            ("BadRequest", r#"strict decoding error: unknown field "spec.epoch""#, RefusedBy::Definition),
            (
                "Invalid",
                r#"Spawn "x" is invalid: status.stage: Unsupported value: "Paused""#,
                RefusedBy::Definition,
            ),
            (
                "Invalid",
                "ValidatingAdmissionPolicy 'users' with binding 'users' denied request",
                RefusedBy::Others,
            ),
            ("BadRequest", r#"admission webhook "a" does not support dry run"#, RefusedBy::Others),
            (
                "Forbidden",
                "exceeded quota: spawns, requested: count/spawns.wasmspawner.io=1",
                RefusedBy::Others,
            ),
            ("AlreadyExists", r#"spawns.wasmspawner.io "x" already exists"#, RefusedBy::Others),
        ] {
            assert_eq!(refusal(&StatusReason::from(reason.to_owned()), message), expected, "{message}");
        }
    }
}

//! The request for a lab in the lab's Secret, with which a process that takes over goes on with the spawn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::spawn::SpawnRequest;
use super::user_string::Wanted;
use crate::names::EnvName;
use crate::names::lab::{JobId, LabKey};
use crate::users::identity::Identity;
use crate::values::digest::Digest;
use crate::values::options::Options;
use crate::values::secret::{SecretBytes, SecretString};

/// The largest request that is kept, in bytes. A Secret may have 1 MiB, and holds the credentials of the environment, too.
const MAX_BYTES: usize = 512 * 1024;

/// The request for a lab as JSON. It has the user's token and the values of environment variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptRequest(SecretBytes);

/// The parts of a request that its record does not have. A field that this version does not know could change what the
/// request means, so it is an error.
#[derive(Serialize, Deserialize)]
struct Content {
    identity: Identity,
    wanted: Wanted,
    options: Options,
    env: BTreeMap<EnvName, String>,
    token: String,
}

/// The reason why a kept request cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum KeptRequestError {
    /// The request is not the one that the record names.
    #[error("the request in the lab's Secret is not the one that was accepted")]
    Foreign,
    /// Another version of the service has written the request.
    #[error("the request in the lab's Secret cannot be read")]
    Unreadable,
}

impl KeptRequest {
    /// Makes the text of a request. Returns `None` for a request that is too large, or for a lab in a workload, which has
    /// no Secret of its own before it runs.
    pub fn from_request(request: &SpawnRequest) -> Option<Self> {
        if request.wanted.workload.is_some() {
            return None;
        }
        let content = Content {
            identity: request.identity.clone(),
            wanted: request.wanted.clone(),
            options: request.options.clone(),
            env: request.env.clone(),
            token: request.token.expose().to_owned(),
        };
        let text = serde_json::to_vec(&content).ok()?;
        (text.len() <= MAX_BYTES).then(|| Self(SecretBytes::new(text)))
    }

    /// Wraps the text in a Secret, which [`Self::read`] checks.
    pub fn from_secret(text: Vec<u8>) -> Self {
        Self(SecretBytes::new(text))
    }

    /// The text itself. Use it only to build a Secret.
    pub fn expose(&self) -> &[u8] {
        self.0.expose()
    }

    /// Returns the digest that the record of the spawn has. A record is trusted and a Secret is not: somebody else may
    /// write into the lab's namespace, and a request decides as whom a lab runs.
    pub fn digest(&self, spawn: JobId) -> Digest {
        Digest::sha256(&[spawn.as_bytes(), self.0.expose()].concat())
    }

    /// Reads the request for this lab, if it is the one whose digest is in the record of the spawn.
    pub fn read(
        &self,
        spawn: JobId,
        digest: Digest,
        key: LabKey,
        requested_by: String,
    ) -> Result<SpawnRequest, KeptRequestError> {
        if self.digest(spawn) != digest {
            return Err(KeptRequestError::Foreign);
        }
        let content: Content =
            serde_json::from_slice(self.0.expose()).map_err(|_| KeptRequestError::Unreadable)?;
        // A field that this version does not know, at any depth, is missing now.
        if serde_json::to_vec(&content).ok().as_deref() != Some(self.0.expose()) {
            return Err(KeptRequestError::Unreadable);
        }
        let Content { identity, wanted, options, env, token } = content;
        let token = SecretString::new(token);
        Ok(SpawnRequest { key, identity, wanted, options, env, token, requested_by })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Username;
    use crate::policy::user_string::Repository;
    use crate::values::options::Value;
    use crate::workload::{Workload, WorkloadKind};
    use uuid::Uuid;

    fn request() -> SpawnRequest {
        let user = Username::parse("ada").unwrap();
        SpawnRequest {
            key: LabKey::default_server(user.clone()),
            identity: Identity::with_numbers(user, 7, 8),
            wanted: Wanted {
                repository: Some(Repository::parse("org/project").unwrap()),
                ..Wanted::default()
            },
            options: Options::from([("size".to_owned(), Value::Text("large".to_owned()))]),
            env: BTreeMap::from([(EnvName::parse("PASSWORD").unwrap(), "hunter2".to_owned())]),
            token: SecretString::new("t0ken"),
            requested_by: "hub".to_owned(),
        }
    }

    fn spawn(number: u128) -> JobId {
        JobId::new(Uuid::from_u128(number))
    }

    #[test]
    fn a_request_survives_being_kept() {
        let wanted = request();
        let kept = KeptRequest::from_request(&wanted).unwrap();
        let digest = kept.digest(spawn(1));
        let kept = KeptRequest::from_secret(kept.expose().to_vec());
        let read = kept.read(spawn(1), digest, wanted.key.clone(), "hub".to_owned()).unwrap();
        assert_eq!(format!("{read:?}"), format!("{wanted:?}"));
        assert_eq!((read.token, read.env), (wanted.token, wanted.env));
        assert!(!format!("{kept:?}").contains("hunter2"));
    }

    #[test]
    fn a_request_that_is_not_the_accepted_one_is_refused() {
        let kept = KeptRequest::from_request(&request()).unwrap();
        let digest = kept.digest(spawn(1));
        let text = String::from_utf8(kept.expose().to_vec()).unwrap();
        let as_root = text.replace(r#""uid":7"#, r#""uid":0"#);
        assert_ne!(text, as_root);
        let read = |text: &str, of: JobId, digest| {
            let kept = KeptRequest::from_secret(text.as_bytes().to_vec());
            kept.read(of, digest, request().key, String::new()).map(drop).map_err(|error| error.to_string())
        };
        let foreign = Err(KeptRequestError::Foreign.to_string());
        assert_eq!(read(&as_root, spawn(1), digest), foreign);
        assert_eq!(read(&text, spawn(2), digest), foreign, "the request of an earlier spawn");
        for newer in [r#"{"priority":1,"#, r#"{"identity":{"suspended":true,"#] {
            let begin = if newer.contains("identity") { r#"{"identity":{"# } else { "{" };
            let newer = text.replacen(begin, newer, 1);
            let of_newer = KeptRequest::from_secret(newer.clone().into_bytes()).digest(spawn(1));
            assert_eq!(read(&newer, spawn(1), of_newer), Err(KeptRequestError::Unreadable.to_string()));
        }
    }

    #[test]
    fn large_requests_and_those_for_workloads_are_not_kept() {
        let mut large = request();
        large.env.insert(EnvName::parse("LARGE").unwrap(), "x".repeat(MAX_BYTES));
        assert_eq!(KeptRequest::from_request(&large), None);
        let mut injected = request();
        injected.wanted.workload = Some(Workload {
            kind: WorkloadKind::Deployment,
            namespace: crate::names::NamespaceName::parse("team").unwrap(),
            name: crate::names::ObjectName::parse("app").unwrap(),
        });
        assert_eq!(KeptRequest::from_request(&injected), None);
    }
}

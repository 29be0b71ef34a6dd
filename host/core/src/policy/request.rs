use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Options, Subject, User};
use crate::names::Fields;

/// The question that the hook `build-pod` answers: a user's lab, with its options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabRequest {
    /// The lab's user.
    pub user: User,
    /// Name of the user's server; `""` is the default server.
    #[serde(default)]
    pub server: String,
    /// The parsed options.
    #[serde(default)]
    pub options: Options,
    /// The lab's values for templates. If absent, a policy's templates are only checked.
    #[serde(skip)]
    pub fields: Option<Arc<Fields>>,
    /// The subject of the request, beyond the user, the server and the options.
    #[serde(skip)]
    pub subject: Subject,
}

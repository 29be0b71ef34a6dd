use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Options, User};
use crate::names::Fields;

/// What `build-pod` is asked: a lab for whom, with which options.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabRequest {
    /// Whose lab.
    pub user: User,
    /// Which of their servers; `""` is the default one.
    #[serde(default)]
    pub server: String,
    /// The parsed options.
    #[serde(default)]
    pub options: Options,
    /// The lab's values for templates. Without them a policy's templates are only checked.
    #[serde(skip)]
    pub fields: Option<Arc<Fields>>,
}

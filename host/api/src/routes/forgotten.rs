//! `/forgotten`

use axum::Json;
use axum::extract::State;
use wasmspawner_core::users::access::Access;

use crate::auth::Caller;
use crate::problem::Problem;
use crate::problem::kind::ProblemKind;
use crate::wire;
use wasmspawner_spawner::{ForgottenError, Leftovers};

/// Labs that JupyterHub does not know any more.
///
/// The service asks the Hub during this request, with its own token.
#[utoipa::path(
    get, path = "/forgotten", tag = "labs", operation_id = "list_forgotten",
    responses(
        (status = 200, description = "Labs that the Hub does not know", body = wire::ForgottenLabs),
        (status = 409, description = "The section `hub` is not configured, so the service cannot ask the Hub", body = crate::problem::ErrorBody),
        (status = 502, description = "The Hub does not accept the service's token, or grants it too little", body = crate::problem::ErrorBody),
        (status = 503, description = "The Hub cannot be asked now", body = crate::problem::ErrorBody),
    )
)]
pub(crate) async fn list_forgotten(
    State(leftovers): State<Leftovers>,
    caller: Caller,
) -> Result<Json<wire::ForgottenLabs>, Problem> {
    caller.may(Access::ListLabs)?;
    Ok(Json(wire::ForgottenLabs::from(&leftovers.forgotten().await?)))
}

impl From<ForgottenError> for Problem {
    fn from(error: ForgottenError) -> Self {
        let msg = error.to_string();
        match error {
            ForgottenError::NotReady(error) => error.into(),
            ForgottenError::NotConfigured => Self::new(ProblemKind::HubNotConfigured, msg),
            ForgottenError::Hub(error) if error.may_pass() => {
                Self::new(ProblemKind::HubUnavailable, msg).retry_after(5)
            }
            ForgottenError::Hub(_) => Self::new(ProblemKind::HubRefused, msg),
        }
    }
}

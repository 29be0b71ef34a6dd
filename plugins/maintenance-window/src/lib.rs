//! Denies new labs, kernels and Dask pools during maintenance of the site. Running ones continue, and can be stopped.

use wasmspawner_sdk::{
    Action, AuthorizeRequest, Denial, Error, Info, Policy, Section, Verdict, WeeklyWindow, export, hooks,
    host,
};

/// The times at which nobody starts anything, except members of these groups.
pub struct MaintenanceWindow {
    windows: Vec<WeeklyWindow>,
    except_groups: Vec<String>,
    message: String,
}

impl Policy for MaintenanceWindow {
    fn info() -> Info {
        Info {
            name: "maintenance-window".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Nothing is started during maintenance".into(),
        }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        if !config.has("windows") {
            config.problem("windows", "is missing");
        }
        let usual = "The site is being maintained; please try again later.";
        Self {
            windows: config.list("windows", WeeklyWindow::read),
            except_groups: config.or_default("except_groups"),
            message: config.optional("message").unwrap_or_else(|| usual.into()),
        }
    }
}

impl hooks::Authorize for MaintenanceWindow {
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error> {
        let now = host::now_millis();
        let is_now = self.windows.iter().any(|window| window.contains(now));
        if !is_now || request.action == Action::Stop || request.user.is_in_any(&self.except_groups) {
            return Ok(Verdict::Allow);
        }
        Ok(Verdict::deny(Denial::by_rule("maintenance", &self.message)))
    }
}

export!(MaintenanceWindow: authorize);

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wasmspawner_sdk::User;
    use wasmspawner_sdk::testing::{TestKit, at};

    use super::*;

    /// Friday, 27 November 2026, 00:00 UTC.
    const FRIDAY: u64 = 1_795_737_600_000;
    const HOUR: u64 = 3_600_000;

    #[test]
    fn nothing_but_a_stop_is_allowed_during_maintenance() {
        let windows = json!([{"days": ["fri"], "from": "08:00", "until": "10:00"}]);
        let config = json!({"windows": windows, "except_groups": ["admins"], "message": "Until ten."});
        let policy = TestKit::<MaintenanceWindow>::new(&config).unwrap();
        let ada = User::named("ada");
        let may =
            |hours, action, user: &User| at(FRIDAY + hours * HOUR, || policy.may(action, user)).unwrap();
        assert_eq!(may(7, Action::Spawn, &ada), Verdict::Allow);
        for action in [Action::Spawn, Action::StartKernel, Action::DaskPool, Action::Scale] {
            assert_eq!(may(8, action, &ada), Verdict::deny(Denial::by_rule("maintenance", "Until ten.")));
        }
        assert_eq!(may(8, Action::Stop, &ada), Verdict::Allow);
        assert_eq!(may(8, Action::Spawn, &ada.in_group("admins")), Verdict::Allow);
    }

    #[test]
    fn a_window_is_needed() {
        assert_eq!(TestKit::<MaintenanceWindow>::new(&json!({})).err().unwrap()[0].field, "/windows");
    }
}

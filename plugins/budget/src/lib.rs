//! Labs cost hours, and each group has a budget of hours for a number of days. Users who have used up their hours start
//! nothing more. Everything that runs continues, and can be stopped.

use wasmspawner_sdk::host::{self, UseOfDays};
use wasmspawner_sdk::{
    Action, AuthorizeRequest, Denial, Error, Info, Policy, Section, Verdict, export, hooks,
};

/// The budgets, and the groups that need none.
pub struct Budgets {
    budgets: Vec<Budget>,
    except_groups: Vec<String>,
}

/// The hours that the members of some groups may use within a number of days.
struct Budget {
    groups: Vec<String>,
    days: u32,
    lab_hours: Option<u64>,
    kernel_hours: Option<u64>,
    cpu_hours: Option<u64>,
}

impl Budget {
    fn read(config: &mut Section<'_>) -> Self {
        let budget = Self {
            groups: config.or_default("groups"),
            days: config.optional("days").unwrap_or(7),
            lab_hours: config.optional("lab_hours"),
            kernel_hours: config.optional("kernel_hours"),
            cpu_hours: config.optional("cpu_hours"),
        };
        if !(1..=30).contains(&budget.days) {
            config.problem("days", "must be a number from 1 to 30");
        }
        if budget.lab_hours.or(budget.kernel_hours).or(budget.cpu_hours).is_none() {
            config
                .problem("lab_hours", "is missing; a budget has `lab_hours`, `kernel_hours` or `cpu_hours`");
        }
        budget
    }

    /// Returns the denial for the first amount that is used up.
    fn used_up(&self, used: UseOfDays) -> Option<Denial> {
        let known = [
            ("lab-hours", self.lab_hours, used.lab_seconds),
            ("kernel-hours", self.kernel_hours, used.kernel_seconds),
            ("CPU-hours", self.cpu_hours, used.cpu_seconds),
        ];
        known.into_iter().find_map(|(what, allowed, seconds)| {
            let allowed = allowed.filter(|allowed| seconds >= allowed.saturating_mul(3600))?;
            let days = self.days;
            let hours = seconds / 3600;
            let message = format!(
                "You have used {hours} of {allowed} {what} that you have for {days} days, today included."
            );
            Some(Denial::by_rule(what.to_lowercase(), message))
        })
    }
}

impl Policy for Budgets {
    fn info() -> Info {
        Info {
            name: "budget".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Hours of labs and CPUs by group".into(),
        }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        Self {
            budgets: config.list("budgets", Budget::read),
            except_groups: config.or_default("except_groups"),
        }
    }
}

impl hooks::Authorize for Budgets {
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error> {
        let user = &request.user;
        if request.action == Action::Stop || user.is_in_any(&self.except_groups) {
            return Ok(Verdict::Allow);
        }
        let budget = self.budgets.iter().find(|budget| user.is_in_any(&budget.groups));
        let used_up = budget.and_then(|budget| budget.used_up(host::past_use(budget.days)));
        Ok(used_up.map_or(Verdict::Allow, Verdict::deny))
    }
}

export!(Budgets: authorize);

#[cfg(test)]
mod tests;

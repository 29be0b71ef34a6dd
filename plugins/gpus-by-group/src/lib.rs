//! GPUs for members of groups, at the times of each group. A GPU is a field of the spawn form, and an entry of the
//! pod's resources.

use wasmspawner_sdk::form::{Field, FormContext, NumberInput};
use wasmspawner_sdk::pod::{Customization, Resources, Toleration};
use wasmspawner_sdk::quota::{Quota, Usage};
use wasmspawner_sdk::{
    Denial, Error, Info, Options, Policy, Section, User, WeeklyWindow, export, hooks, host,
};

/// The option of the form.
const GPUS: &str = "gpus";

/// The number of GPUs that members of each group may have, and the times at which they may have them.
pub struct GpusByGroup {
    resource: String,
    rules: Vec<Rule>,
}

struct Rule {
    group: String,
    gpus: u32,
    /// The times of the rule. Without windows it applies at any time.
    windows: Vec<WeeklyWindow>,
}

impl Rule {
    fn read(entry: &mut Section<'_>) -> Self {
        Self {
            group: entry.required("group"),
            gpus: entry.required("gpus"),
            windows: entry.list("windows", WeeklyWindow::read),
        }
    }

    fn holds(&self, user: &User) -> bool {
        let now = host::now_millis();
        user.is_in(&self.group)
            && (self.windows.is_empty() || self.windows.iter().any(|window| window.contains(now)))
    }
}

impl GpusByGroup {
    fn most(&self, user: &User) -> u32 {
        self.rules.iter().filter(|rule| rule.holds(user)).map(|rule| rule.gpus).max().unwrap_or_default()
    }
}

impl Policy for GpusByGroup {
    fn info() -> Info {
        Info {
            name: "gpus-by-group".into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "GPUs for groups, at their times".into(),
        }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        let resource = config.optional("resource").unwrap_or_else(|| "nvidia.com/gpu".to_owned());
        Self { resource, rules: config.list("rules", Rule::read) }
    }
}

impl hooks::Form for GpusByGroup {
    fn fields(&self, context: &FormContext) -> Result<Vec<Field>, Error> {
        let most = f64::from(self.most(&context.user));
        let input = NumberInput { default: 0.0, minimum: Some(0.0), maximum: Some(most), step: Some(1.0) };
        Ok((most > 0.0).then(|| Field::number(GPUS, "GPUs", input)).into_iter().collect())
    }
}

impl hooks::Quota for GpusByGroup {
    fn limits(&self, user: &User, _: &Usage) -> Result<Quota, Error> {
        Ok(Quota { extended: vec![(self.resource.clone(), self.most(user).into())], ..Quota::default() })
    }
}

impl hooks::BuildPod for GpusByGroup {
    /// Checks again how many GPUs the user may have, because not every lab is started with the form.
    fn customize(&self, user: &User, _server: &str, options: &Options) -> Result<Customization, Error> {
        let (asked, most) = (options.count(GPUS)?, self.most(user));
        if asked > most {
            let message = format!("You may have {most} GPUs now.");
            return Err(Error::denied(Denial::by_rule(GPUS, message)));
        }
        if asked == 0 {
            return Ok(Customization::default());
        }
        let extended = vec![(self.resource.clone(), asked.into())];
        Ok(Customization {
            resources: Some(Resources { extended, ..Resources::default() }),
            tolerations: vec![Toleration::exists(&self.resource)],
            ..Customization::default()
        })
    }
}

export!(GpusByGroup: form, quota, build_pod);

#[cfg(test)]
mod tests {
    use serde_json::json;
    use wasmspawner_sdk::testing::{TestKit, at};

    use super::*;

    /// Friday, 27 November 2026, 00:00 UTC.
    const FRIDAY: u64 = 1_795_737_600_000;
    const HOUR: u64 = 3_600_000;

    fn policy() -> TestKit<GpusByGroup> {
        let nights = json!([{"from": "20:00", "until": "06:00"}]);
        let rules =
            json!([{"group": "vision", "gpus": 1}, {"group": "vision", "gpus": 4, "windows": nights}]);
        TestKit::new(&json!({ "rules": rules })).unwrap()
    }

    #[test]
    fn a_group_has_more_gpus_at_night() {
        let ada = User::named("ada").in_group("vision");
        let most =
            |user: &User, hours| at(FRIDAY + hours * HOUR, || policy().limits(user)).unwrap().extended[0].1;
        assert_eq!(
            [most(&ada, 12), most(&ada, 21), most(&ada, 5), most(&User::named("eve"), 21)],
            [1, 4, 4, 0]
        );
        let asks = |user: &User, hours, gpus| {
            at(FRIDAY + hours * HOUR, || policy().customize(user, &json!({ "gpus": gpus })))
        };
        let lab = asks(&ada, 21, 2).unwrap();
        assert_eq!(lab.resources.unwrap().extended, [("nvidia.com/gpu".to_owned(), 2)]);
        assert_eq!(lab.tolerations.len(), 1);
        assert_eq!(asks(&ada, 12, 2), Err(Error::denied(Denial::by_rule(GPUS, "You may have 1 GPUs now."))));
        assert!(asks(&User::named("eve"), 21, 1).is_err());
        assert_eq!(asks(&User::named("eve"), 21, 0), Ok(Customization::default()));
    }

    #[test]
    fn who_may_have_none_sees_no_field() {
        assert!(policy().fields(&User::named("eve")).unwrap().is_empty());
        assert_eq!(policy().fields(&User::named("ada").in_group("vision")).unwrap()[0].name, "gpus");
    }
}

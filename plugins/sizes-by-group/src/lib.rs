//! Sizes of labs, some of which are only for members of groups.

use wasmspawner_sdk::form::{Choice, Field, FormContext};
use wasmspawner_sdk::pod::{Customization, Resources};
use wasmspawner_sdk::{Error, Info, Options, Policy, Section, User, export, hooks, quantity};

/// The policy with its configuration.
pub struct SizesByGroup {
    sizes: Vec<Size>,
}

struct Size {
    name: String,
    cpu_millis: u64,
    memory_bytes: u64,
    /// The groups whose members may choose the size; if empty, everybody may.
    groups: Vec<String>,
}

impl Size {
    /// Reads one entry of `sizes`. Errors are reported with their place in the configuration.
    fn read(entry: &mut Section<'_>) -> Self {
        Self {
            name: entry.required("name"),
            cpu_millis: entry.required_parsed("cpu", quantity::cpu_millis),
            memory_bytes: entry.required_parsed("memory", quantity::bytes),
            groups: entry.or_default("groups"),
        }
    }

    fn is_for(&self, user: &User) -> bool {
        self.groups.is_empty() || user.is_in_any(&self.groups)
    }

    fn choice(&self) -> Choice {
        let (cpus, memory) = (quantity::show_cpus(self.cpu_millis), quantity::show_bytes(self.memory_bytes));
        Choice::new(&self.name, &self.name).describe(format!("{cpus} CPU, {memory}"))
    }
}

impl Policy for SizesByGroup {
    fn info() -> Info {
        Info {
            name: env!("CARGO_PKG_NAME").into(),
            version: env!("CARGO_PKG_VERSION").into(),
            description: "Sizes of labs, by group".into(),
        }
    }

    fn from_config(config: &mut Section<'_>) -> Self {
        let sizes = config.list("sizes", Size::read);
        if !sizes.iter().any(|size| size.groups.is_empty()) {
            config.problem("sizes", "has none for everybody; give at least one no `groups`");
        }
        Self { sizes }
    }
}

impl hooks::Form for SizesByGroup {
    fn fields(&self, context: &FormContext) -> Result<Vec<Field>, Error> {
        let choices = self.sizes.iter().filter(|size| size.is_for(&context.user)).map(Size::choice).collect();
        Ok(vec![Field::radio("size", "Size", choices).required()])
    }
}

impl hooks::BuildPod for SizesByGroup {
    /// Checks again who may have the size. The form was checked, but not every lab is started with it.
    fn customize(&self, user: &User, _server: &str, options: &Options) -> Result<Customization, Error> {
        let mut allowed = self.sizes.iter().filter(|size| size.is_for(user));
        let size = match options.text("size") {
            Some(name) => allowed.find(|size| size.name == name),
            None => allowed.next(),
        };
        let size = size.ok_or_else(|| Error::denied("This size is not for you."))?;
        let resources = Resources {
            cpu_limit_millis: Some(size.cpu_millis),
            cpu_request_millis: Some(size.cpu_millis / 4),
            memory_limit_bytes: Some(size.memory_bytes),
            memory_request_bytes: Some(size.memory_bytes),
            ..Resources::default()
        };
        Ok(Customization { resources: Some(resources), ..Customization::default() })
    }
}

export!(SizesByGroup: form, build_pod);

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wasmspawner_sdk::testing::TestKit;

    use super::*;

    fn policy() -> TestKit<SizesByGroup> {
        let sizes = json!([
            {"name": "small", "cpu": 1, "memory": "2Gi"},
            {"name": "large", "cpu": 8, "memory": "32Gi", "groups": ["staff"]},
        ]);
        TestKit::new(&json!({ "sizes": sizes })).unwrap()
    }

    #[test]
    fn members_of_a_group_see_its_sizes() {
        let sizes = |user: &User, size: &str| policy().parse(user, &json!({ "size": size })).is_ok();
        let (eve, ada) = (User::named("eve"), User::named("ada").in_group("staff"));
        assert!(sizes(&eve, "small") && !sizes(&eve, "large"));
        assert!(sizes(&ada, "small") && sizes(&ada, "large"));
    }

    #[test]
    fn a_lab_has_its_size_and_nobody_gets_another_by_asking_for_it() {
        let memory = |user: &User, options: Value| {
            policy().customize(user, &options).map(|lab| lab.resources.unwrap().memory_limit_bytes)
        };
        let ada = User::named("ada").in_group("staff");
        assert_eq!(memory(&ada, json!({ "size": "large" })), Ok(Some(32 << 30)));
        assert_eq!(memory(&ada, json!({})), Ok(Some(2 << 30)));
        let denied = memory(&User::named("eve"), json!({ "size": "large" }));
        assert_eq!(denied, Err(Error::denied("This size is not for you.")));
    }

    #[test]
    fn what_is_wrong_in_the_configuration_is_told_with_its_place() {
        let wrong = json!({ "sizes": [{"name": "small", "cpu": "1x", "groups": ["staff"]}] });
        let problems = TestKit::<SizesByGroup>::new(&wrong).err().unwrap();
        let fields: Vec<&str> = problems.iter().map(|problem| problem.field.as_str()).collect();
        assert_eq!(fields, ["/sizes/0/cpu", "/sizes/0/memory", "/sizes"]);
    }
}

use wasmspawner_sdk::form::{Choice, Field};
use wasmspawner_sdk::pod::Resources;
use wasmspawner_sdk::{Error, Options, Section, User, UserQuota, quantity};

use super::distinct::Distinct;

/// The option with the name of the chosen size.
pub(crate) const SIZE: &str = "size";

/// The sizes that users choose from.
#[derive(Default)]
pub(crate) struct Sizes {
    sizes: Vec<Size>,
    default: Option<String>,
}

/// The resources of a lab.
pub(crate) struct Size {
    name: String,
    /// The text for users, such as `Small (1.0 CPU, 4Gi RAM)`, as Nublado writes it.
    pub(crate) label: String,
    pub(crate) resources: Resources,
}

impl Sizes {
    pub(super) fn read(lab: &mut Section<'_>) -> Self {
        let mut names = Distinct::default();
        let sizes = lab.list("sizes", |size| {
            let read = Size::read(size);
            names.add(size, "size", &read.name);
            read
        });
        if sizes.is_empty() {
            lab.problem("sizes", "needs at least one size, such as {size: small, cpu: 1, memory: 4Gi}");
        }
        let default: Option<String> = lab.optional("defaultSize");
        if let Some(default) = default.as_ref().filter(|default| !names.names().contains(default)) {
            let known = names.names().join(", ");
            lab.problem("defaultSize", format!("there is no `{default}`; there are {known}"));
        }
        Self { sizes, default }
    }

    /// The field of the form, with the sizes that the user's quota allows.
    pub(crate) fn field(&self, user: &User) -> Result<Field, Error> {
        let choices = self.offered(user).map(|size| Choice::new(&size.name, &size.label)).collect();
        let field = Field::radio(SIZE, "Size", choices).required();
        Ok(field.default_choice(&self.default(user)?.name))
    }

    /// The chosen size, or else the default.
    pub(crate) fn chosen(&self, user: &User, options: &Options) -> Result<&Size, Error> {
        let Some(name) = options.text(SIZE) else { return self.default(user) };
        let size = self.offered(user).find(|size| size.name == name);
        size.ok_or_else(|| Error::invalid(SIZE, format!("`{name}` is not offered to you")))
    }

    /// The configured default if the quota allows it, or else the first size that it allows.
    fn default(&self, user: &User) -> Result<&Size, Error> {
        let configured = self.offered(user).find(|size| Some(&size.name) == self.default.as_ref());
        configured
            .or_else(|| self.offered(user).next())
            .ok_or_else(|| Error::denied("Your quota allows none of the sizes of labs here."))
    }

    fn offered(&self, user: &User) -> impl Iterator<Item = &Size> {
        let quota = user.quota;
        self.sizes.iter().filter(move |size| quota.as_ref().is_none_or(|quota| size.fits(quota)))
    }
}

impl Size {
    /// Reads `{size, cpu, memory}`, which are limits, or `{size, resources: {limits, requests}}`. Absent requests
    /// default to a quarter of the limits, because labs are idle most of the time.
    fn read(size: &mut Section<'_>) -> Self {
        let name: String = size.required("size");
        let resources = match size.section("resources", both) {
            Some(resources) => {
                for key in ["cpu", "memory"].into_iter().filter(|key| size.has(key)) {
                    size.problem(key, "is in `resources` already");
                }
                resources
            }
            None => with_quarter(
                size.required_parsed("cpu", quantity::cpu_millis),
                size.required_parsed("memory", memory),
            ),
        };
        let amounts = [resources.cpu_limit_millis, resources.memory_limit_bytes];
        if size.has("size") && amounts.contains(&Some(0)) {
            size.problem("", "must have more than no CPU and no memory");
        }
        let label = format!("{} ({})", capitalized(&name), describe(&resources));
        Self { name, label, resources }
    }

    fn fits(&self, quota: &UserQuota) -> bool {
        let within =
            |amount: Option<u64>, limit: Option<u64>| limit.is_none_or(|limit| amount <= Some(limit));
        within(self.resources.cpu_limit_millis, quota.cpu_millis)
            && within(self.resources.memory_limit_bytes, quota.memory_bytes)
    }
}

fn both(resources: &mut Section<'_>) -> Resources {
    let amounts = |amounts: &mut Section<'_>| {
        (amounts.required_parsed("cpu", quantity::cpu_millis), amounts.required_parsed("memory", memory))
    };
    if !resources.has("limits") {
        resources.problem("limits", "is missing");
    }
    let (cpu, bytes) = resources.section("limits", amounts).unwrap_or_default();
    let requests = resources.section("requests", amounts);
    if requests.is_some_and(|(cpu_request, request)| cpu_request > cpu || request > bytes) {
        resources.problem("requests", "are more than the limits");
    }
    let quarter = with_quarter(cpu, bytes);
    match requests {
        Some((cpu, bytes)) => {
            Resources { cpu_request_millis: Some(cpu), memory_request_bytes: Some(bytes), ..quarter }
        }
        None => quarter,
    }
}

fn with_quarter(cpu_millis: u64, bytes: u64) -> Resources {
    Resources {
        cpu_limit_millis: Some(cpu_millis),
        cpu_request_millis: Some(cpu_millis / 4),
        memory_limit_bytes: Some(bytes),
        memory_request_bytes: Some(bytes / 4),
        ..Resources::default()
    }
}

/// Reads an amount of memory. Nublado also allows the `B` of the unit, as in `4GiB`, which Kubernetes does not.
pub(super) fn memory(text: &str) -> Result<u64, quantity::QuantityError> {
    match text.strip_suffix('B') {
        Some(without) if without.ends_with(|char: char| char.is_ascii_alphabetic()) => {
            quantity::bytes(without)
        }
        _ => quantity::bytes(text),
    }
}

fn capitalized(name: &str) -> String {
    let mut chars = name.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// Describes the limits, as in `1.0 CPU, 4Gi RAM`.
fn describe(resources: &Resources) -> String {
    let bytes = resources.memory_limit_bytes.unwrap_or_default();
    let units = [(40, "Ti"), (30, "Gi"), (20, "Mi"), (10, "Ki")];
    let largest = units.into_iter().find(|(bits, _)| bytes > 0 && bytes.trailing_zeros() >= *bits);
    let memory = largest.map_or_else(|| bytes.to_string(), |(bits, unit)| format!("{}{unit}", bytes >> bits));
    format!("{:?} CPU, {memory} RAM", cpus(resources.cpu_limit_millis))
}

/// CPUs as a number with at least one decimal place, which Python writes in the same way.
pub(crate) fn cpus(millis: Option<u64>) -> f64 {
    let millis = u32::try_from(millis.unwrap_or_default()).unwrap_or(u32::MAX);
    f64::from(millis) / 1000.0
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use wasmspawner_sdk::{FieldError, config};

    use super::*;

    fn sizes(list: &Value) -> Result<Sizes, Vec<FieldError>> {
        config::check(&json!({"sizes": list}).to_string(), Sizes::read).map(|(sizes, _)| sizes)
    }

    #[test]
    fn a_size_is_shown_with_its_amounts() {
        for (size, label) in [
            (json!({"size": "small", "cpu": 1.0, "memory": "4Gi"}), "Small (1.0 CPU, 4Gi RAM)"),
            (json!({"size": "tiny", "cpu": 0.5, "memory": "1536MiB"}), "Tiny (0.5 CPU, 1536Mi RAM)"),
            (json!({"size": "fine", "cpu": "250m", "memory": "512Mi"}), "Fine (0.25 CPU, 512Mi RAM)"),
        ] {
            assert_eq!(sizes(&json!([size])).unwrap().sizes[0].label, label);
        }
    }

    #[test]
    fn requests_are_a_quarter_of_the_limits_or_as_configured() {
        let both = json!({"limits": {"cpu": 4, "memory": "16Gi"}, "requests": {"cpu": 2, "memory": "4GiB"}});
        let read =
            sizes(&json!([{"size": "s", "cpu": 4, "memory": "16Gi"}, {"size": "m", "resources": both}]))
                .unwrap();
        let requests = |size: &Size| (size.resources.cpu_request_millis, size.resources.memory_request_bytes);
        assert_eq!(requests(&read.sizes[0]), (Some(1000), Some(4 << 30)));
        assert_eq!(requests(&read.sizes[1]), (Some(2000), Some(4 << 30)));
    }

    #[test]
    fn wrong_sizes_are_errors() {
        for list in [
            json!([]),
            json!([{"size": "s", "cpu": 1}]),
            json!([{"size": "s", "cpu": 0, "memory": "1Gi"}]),
            json!([{"size": "s", "cpu": 1, "memory": "lots"}]),
            json!([{"size": "s", "cpu": 1, "memory": "1Gi"}, {"size": "s", "cpu": 2, "memory": "2Gi"}]),
            json!([{"size": "s", "resources": {"limits": {"cpu": 1, "memory": "1Gi"}, "requests": {"cpu": 2, "memory": "1Gi"}}}]),
        ] {
            assert!(!sizes(&list).err().unwrap().is_empty(), "{list}");
        }
    }
}

use std::collections::BTreeMap;

use wasmspawner_sdk::form::{Choice, Field};
use wasmspawner_sdk::{Error, Options, Section};

use super::overrides::Overrides;
use super::unlisted::Unlisted;

/// The choice that stands for a typed value.
const UNLISTED: &str = "unlisted-choice";

/// One of the `profile_options`: a further choice within a profile.
pub(super) struct ProfileOption {
    display_name: Option<String>,
    choices: BTreeMap<String, OptionChoice>,
    unlisted: Option<Unlisted>,
}

struct OptionChoice {
    display_name: Option<String>,
    default: bool,
    overrides: Overrides,
}

impl OptionChoice {
    fn read(entry: &mut Section<'_>) -> Self {
        Self {
            display_name: entry.optional("display_name"),
            default: entry.or_default("default"),
            overrides: entry.section("kubespawner_override", Overrides::read_listed).unwrap_or_default(),
        }
    }
}

impl ProfileOption {
    pub(super) fn read(entry: &mut Section<'_>) -> Self {
        let option = Self {
            display_name: entry.optional("display_name"),
            choices: entry.map("choices", OptionChoice::read),
            unlisted: entry.section("unlisted_choice", Unlisted::read).flatten(),
        };
        if option.choices.is_empty() && option.unlisted.is_none() {
            entry.problem(
                "",
                "has nothing to choose from; give it `choices`, or an `unlisted_choice` that is `enabled`",
            );
        }
        if option.choices.values().filter(|choice| choice.default).count() > 1 {
            entry.problem("choices", "has more than one `default`");
        }
        if option.unlisted.is_some() && option.choices.contains_key(UNLISTED) {
            entry.problem("choices", format!("`{UNLISTED}` is the name of what is typed in; rename it"));
        }
        option
    }

    /// The choice that is marked as default, or else the first; `None` if the value can only be typed.
    fn default(&self) -> Option<&str> {
        let marked = self.choices.iter().find(|(_, choice)| choice.default);
        marked.or_else(|| self.choices.iter().next()).map(|(name, _)| name.as_str())
    }

    /// The fields of the option. `key` is the name of the first. They are shown while the field `profile` is `slug`.
    pub(super) fn fields(&self, name: &str, key: &str, (profile, slug): (&str, &str)) -> Vec<Field> {
        let label = self.display_name.as_deref().unwrap_or(name);
        let mut fields = Vec::new();
        if let Some(default) = self.default() {
            let listed = self
                .choices
                .iter()
                .map(|(name, choice)| Choice::new(name, choice.display_name.as_ref().unwrap_or(name)));
            let typed = self.unlisted.iter().map(|unlisted| Choice::new(UNLISTED, &unlisted.name_in_choices));
            let select = Field::select(key, label, listed.chain(typed).collect());
            fields.push(select.default_choice(default).required().visible_when(profile, &[slug]));
        }
        if let Some(unlisted) = &self.unlisted {
            let field = unlisted.field(typed_key(key), label);
            let (when, value) = if fields.is_empty() { (profile, slug) } else { (key, UNLISTED) };
            fields.push(field.visible_when(when, &[value]));
        }
        fields
    }

    /// A typed value in a submission takes precedence over any listed choice. Forms do not submit a text that is hidden
    /// because something else is chosen.
    pub(super) fn imply_unlisted(&self, key: &str, submission: &mut Options) {
        if self.unlisted.is_none() || submission.get(&typed_key(key)).is_none() {
            return;
        }
        if self.choices.is_empty() {
            submission.remove(key);
        } else {
            submission.insert(key, UNLISTED.into());
        }
    }

    /// The overrides of the chosen or typed value.
    pub(super) fn chosen(&self, name: &str, options: &Options) -> Result<Overrides, Error> {
        let chosen = given(options, name).or_else(|| self.default()).unwrap_or(UNLISTED);
        if let Some(choice) = self.choices.get(chosen) {
            return choice.overrides.filled();
        }
        match &self.unlisted {
            Some(unlisted) if chosen == UNLISTED => {
                let field = typed_key(name);
                let typed = options.text(&field).unwrap_or_default();
                unlisted.with(&field, typed)
            }
            _ => Err(Error::invalid(name, format!("`{chosen}` is not offered"))),
        }
    }

    /// The overrides of every choice, as known before a user types a value.
    pub(super) fn without_typed_text(&self) -> Vec<Overrides> {
        let listed = self.choices.values().map(|choice| choice.overrides.clone());
        listed.chain(self.unlisted.iter().filter_map(Unlisted::without_typed_text)).collect()
    }
}

/// A text that is not empty.
fn given<'a>(options: &'a Options, name: &str) -> Option<&'a str> {
    options.text(name).filter(|text| !text.is_empty())
}

/// The name of the field for the typed value that belongs to the field `key`.
pub(super) fn typed_key(key: &str) -> String {
    format!("{key}--{UNLISTED}")
}

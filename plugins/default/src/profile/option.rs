use std::collections::BTreeMap;

use wasmspawner_sdk::form::{Choice, Field};
use wasmspawner_sdk::{Error, Options, Section, User};

use super::audience::Audience;
use super::overrides::Overrides;
use super::refused;
use super::unlisted::Unlisted;

/// The choice that stands for a typed value.
const UNLISTED: &str = "unlisted-choice";

/// One of the `profile_options`: a further choice within a profile.
pub(super) struct ProfileOption {
    display_name: Option<String>,
    description: Option<String>,
    audience: Audience,
    choices: BTreeMap<String, OptionChoice>,
    unlisted: Option<Unlisted>,
}

struct OptionChoice {
    display_name: Option<String>,
    description: Option<String>,
    audience: Audience,
    default: bool,
    overrides: Overrides,
}

impl OptionChoice {
    fn read(entry: &mut Section<'_>) -> Self {
        refused::refuse_beside_override(entry);
        // KubeSpawner and its forms find a choice by its key, so a slug has no effect.
        entry.optional::<String>("slug");
        Self {
            display_name: entry.optional("display_name"),
            description: entry.optional("description"),
            audience: Audience::read(entry),
            default: entry.or_default("default"),
            overrides: entry.section("kubespawner_override", Overrides::read_listed).unwrap_or_default(),
        }
    }
}

impl ProfileOption {
    pub(super) fn read(entry: &mut Section<'_>) -> Self {
        refused::refuse_beside_override(entry);
        entry.optional::<String>("slug");
        warn_of_building(entry);
        let option = Self {
            display_name: entry.optional("display_name"),
            description: entry.optional("description"),
            audience: Audience::read(entry),
            choices: entry.map("choices", OptionChoice::read),
            unlisted: entry.section("unlisted_choice", Unlisted::read).flatten(),
        };
        if option.choices.is_empty() && option.unlisted.is_none() {
            entry.problem(
                "",
                "has nothing to choose from; give it `choices`, or an `unlisted_choice` that is `enabled`",
            );
        }
        if option.unlisted.is_some() && option.choices.contains_key(UNLISTED) {
            entry.problem("choices", format!("`{UNLISTED}` is the name of what is typed in; rename it"));
        }
        option
    }

    /// True if the user may choose or type a value. Nobody can start a lab without one.
    pub(super) fn is_open_to(&self, user: &User) -> bool {
        !self.is_for(user) || self.open_choices(user).next().is_some() || self.open_unlisted(user).is_some()
    }

    fn described(&self, field: Field) -> Field {
        match &self.description {
            Some(description) => field.help(description),
            None => field,
        }
    }

    /// True if the option exists for this user. For all others a lab is made without it.
    pub(super) fn is_for(&self, user: &User) -> bool {
        self.audience.admits(user)
    }

    fn open_choices(&self, user: &User) -> impl Iterator<Item = (&String, &OptionChoice)> {
        self.choices.iter().filter(|(_, choice)| choice.audience.admits(user))
    }

    fn open_unlisted(&self, user: &User) -> Option<&Unlisted> {
        self.unlisted.as_ref().filter(|unlisted| unlisted.audience.admits(user))
    }

    /// The first choice that is marked as default and that the user sees, or else the first that they see; `None` if the
    /// value can only be typed.
    fn default(&self, user: &User) -> Option<&str> {
        let marked = self.open_choices(user).find(|(_, choice)| choice.default);
        marked.or_else(|| self.open_choices(user).next()).map(|(name, _)| name.as_str())
    }

    /// The fields of the option. `key` is the name of the first. They are shown while the field `profile` is `slug`.
    pub(super) fn fields(
        &self,
        user: &User,
        name: &str,
        key: &str,
        (profile, slug): (&str, &str),
    ) -> Vec<Field> {
        let label = self.display_name.as_deref().unwrap_or(name);
        let mut fields = Vec::new();
        if !self.is_for(user) {
            return fields;
        }
        if let Some(default) = self.default(user) {
            let listed = self.open_choices(user).map(|(name, choice)| choice.shown(name));
            let typed = self.open_unlisted(user).map(|unlisted| unlisted.choice(UNLISTED));
            let select = Field::select(key, label, listed.chain(typed).collect());
            let select = self.described(select.default_choice(default).required());
            fields.push(select.visible_when(profile, &[slug]));
        }
        if let Some(unlisted) = self.open_unlisted(user) {
            let field = unlisted.field(typed_key(key), label);
            let (when, value) = if fields.is_empty() { (profile, slug) } else { (key, UNLISTED) };
            fields.push(field.visible_when(when, &[value]));
        }
        fields
    }

    /// A typed value in a submission takes precedence over any listed choice. Forms do not submit a text that is hidden
    /// because something else is chosen.
    pub(super) fn imply_unlisted(&self, user: &User, key: &str, submission: &mut Options) {
        if self.open_unlisted(user).is_none() || submission.get(&typed_key(key)).is_none() {
            return;
        }
        if self.open_choices(user).next().is_none() {
            submission.remove(key);
        } else {
            submission.insert(key, UNLISTED.into());
        }
    }

    /// The overrides of the chosen or typed value.
    pub(super) fn chosen(&self, user: &User, name: &str, options: &Options) -> Result<Overrides, Error> {
        let chosen = given(options, name).or_else(|| self.default(user)).unwrap_or(UNLISTED);
        if let Some(choice) = self.choices.get(chosen).filter(|choice| choice.audience.admits(user)) {
            return choice.overrides.filled();
        }
        match self.open_unlisted(user) {
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

impl OptionChoice {
    fn shown(&self, name: &str) -> Choice {
        let shown = Choice::new(name, self.display_name.as_deref().unwrap_or(name));
        Choice { description: self.description.clone(), ..shown }
    }
}

/// Warns of `dynamic_image_building`, with which the form extension jupyterhub-fancy-profiles lets users build an image
/// from a repository.
fn warn_of_building(entry: &mut Section<'_>) {
    let asked = entry.section("dynamic_image_building", |building| building.or_default("enabled"));
    if asked.unwrap_or(false) {
        entry.warning(
            "dynamic_image_building",
            "no images are built here: users choose from the list, or type an image if `unlisted_choice` is enabled",
        );
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

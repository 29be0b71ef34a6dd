//! KubeSpawner's `profile_list`, as used by sites of Zero to JupyterHub.
//!
//! The lab's options are KubeSpawner's `user_options`: `profile`, the names of the profile's options, and
//! `NAME--unlisted-choice` for a typed value. The form's fields have the names of KubeSpawner's form. A submission may
//! use either kind of names.

mod amount;
mod change;
mod chosen;
mod expression;
mod form;
mod kubernetes;
#[cfg(test)]
mod kubespawner_tests;
mod letters;
mod option;
mod overrides;
mod refused;
mod settings;
mod slug;
#[cfg(test)]
mod tests;
mod unlisted;
mod wanted;

use std::collections::BTreeMap;

use wasmspawner_sdk::{Error, Options, Section, User};

use crate::storage::Storage;
use chosen::Chosen;
use option::ProfileOption;
use overrides::Overrides;

/// The option that contains the chosen profile.
pub(crate) const PROFILE: &str = "profile";

/// The profiles, in their order.
pub(crate) struct Profiles(Vec<Profile>);

struct Profile {
    slug: String,
    display_name: String,
    description: Option<String>,
    default: bool,
    /// The groups whose members see the profile; if empty, every user does.
    groups: Vec<String>,
    overrides: Overrides,
    options: BTreeMap<String, ProfileOption>,
}

impl Profiles {
    /// Reads the profiles. `taken` are the names of the form's other fields.
    pub(crate) fn read(config: &mut Section<'_>, site: &Storage, taken: &[&str]) -> Self {
        let mut slugs: Vec<String> = Vec::new();
        let mut defaults = 0;
        let profiles = config.list("profile_list", |entry| {
            let profile = Profile::read(entry, site);
            if slugs.contains(&profile.slug) && !profile.slug.is_empty() {
                entry.problem("slug", format!("there is a `{}` before; slugs must differ", profile.slug));
            }
            slugs.push(profile.slug.clone());
            defaults += u32::from(profile.default);
            if profile.default && defaults > 1 {
                entry.problem("default", "another profile is the default already");
            }
            for name in profile.options.keys().filter(|name| taken.contains(&name.as_str())) {
                entry
                    .problem("profile_options", format!("`{name}` is the name of another field; rename one"));
            }
            profile
        });
        Self(profiles)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn open_to<'a>(&'a self, user: &User) -> impl Iterator<Item = &'a Profile> {
        self.0.iter().filter(|profile| profile.groups.is_empty() || user.is_in_any(&profile.groups))
    }

    /// The profile that is marked as default if this user may choose it, or else the first that they may choose.
    fn default(&self, user: &User) -> Result<&Profile, Error> {
        let marked = self.open_to(user).find(|profile| profile.default);
        let found = marked.or_else(|| self.open_to(user).next());
        found.ok_or_else(|| Error::denied("None of the profiles here are open to your groups."))
    }

    fn of(&self, user: &User, options: &Options) -> Result<&Profile, Error> {
        let slug = options.text(PROFILE).filter(|slug| !slug.is_empty());
        let Some(slug) = slug else { return self.default(user) };
        let found = self.open_to(user).find(|profile| profile.slug == slug);
        found.ok_or_else(|| Error::invalid(PROFILE, format!("`{slug}` is not offered to you")))
    }

    /// The overrides of the chosen profile and options; empty if the site has no profiles.
    pub(crate) fn chosen(&self, user: &User, options: &Options) -> Result<Chosen, Error> {
        if self.is_empty() {
            return Ok(Chosen(Vec::new()));
        }
        let profile = self.of(user, options)?;
        let mut chosen = vec![profile.overrides.filled()?];
        for (name, option) in &profile.options {
            chosen.push(option.chosen(name, options)?);
        }
        Ok(Chosen(chosen))
    }
}

impl Profile {
    fn read(entry: &mut Section<'_>, site: &Storage) -> Self {
        let display_name: String = entry.required("display_name");
        let made = slug::slug(&display_name);
        if made.is_none() && !display_name.is_empty() && !entry.has("slug") {
            entry.problem("slug", format!("cannot be made of {display_name:?}; write one"));
        }
        let given: Option<String> = entry.optional("slug");
        if given.as_ref().is_some_and(String::is_empty) {
            entry.problem("slug", "must not be empty");
        }
        let overrides = entry.section("kubespawner_override", |entry| {
            let overrides = Overrides::read_listed(entry);
            overrides.check_volumes(entry, site);
            overrides
        });
        Self {
            slug: given.or(made).unwrap_or_default(),
            description: entry.optional("description"),
            default: entry.or_default("default"),
            groups: entry.or_default("groups"),
            overrides: overrides.unwrap_or_default(),
            options: entry.map("profile_options", ProfileOption::read),
            display_name,
        }
    }
}

//! KubeSpawner's `profile_list`, as used by sites of Zero to JupyterHub.
//!
//! The lab's options are KubeSpawner's `user_options`: `profile`, the names of the profile's options, and
//! `NAME--unlisted-choice` for a typed value. The form's fields have the names of KubeSpawner's form. A submission may
//! use either kind of names.

mod amount;
mod audience;
mod change;
mod chosen;
mod expression;
mod form;
#[cfg(test)]
mod form_extension_tests;
mod items;
mod kubernetes;
#[cfg(test)]
mod kubespawner_tests;
mod letters;
mod option;
mod overrides;
mod pod_parts;
mod refused;
mod settings;
#[cfg(test)]
mod site_tests;
mod slug;
#[cfg(test)]
mod tests;
mod unlisted;
mod wanted;

use std::collections::BTreeMap;

use wasmspawner_sdk::{Error, Options, Section, User};

use crate::storage::Storage;
use audience::Audience;
use chosen::Chosen;
use option::ProfileOption;
use overrides::Overrides;

/// The option that contains the chosen profile.
pub(crate) const PROFILE: &str = "profile";

/// The profiles, and the settings of every lab.
pub(crate) struct Profiles {
    /// The settings of every lab, with the keys of an override.
    site: Overrides,
    /// The service accounts of groups, in their order.
    accounts: Vec<(Audience, Overrides)>,
    /// In their order.
    list: Vec<Profile>,
}

struct Profile {
    slug: String,
    display_name: String,
    description: Option<String>,
    default: bool,
    audience: Audience,
    overrides: Overrides,
    options: BTreeMap<String, ProfileOption>,
}

impl Profiles {
    /// Reads the profiles. `taken` are the names of the form's other fields.
    pub(crate) fn read(config: &mut Section<'_>, site: &Storage, taken: &[&str]) -> Self {
        refused::refuse_beside_settings(config);
        let settings = config.section("kubespawner", |entry| Overrides::read_site(entry, site));
        let settings = settings.unwrap_or_default();
        let site = &settings.applied_to(site);
        let mut slugs: Vec<String> = Vec::new();
        let list = config.list("profile_list", |entry| {
            let profile = Profile::read(entry, site);
            if slugs.contains(&profile.slug) && !profile.slug.is_empty() {
                entry.problem("slug", format!("there is a `{}` before; slugs must differ", profile.slug));
            }
            slugs.push(profile.slug.clone());
            for name in profile.options.keys().filter(|name| taken.contains(&name.as_str())) {
                entry
                    .problem("profile_options", format!("`{name}` is the name of another field; rename one"));
            }
            profile
        });
        let accounts = config.list("service_accounts", |entry| {
            let name: String = entry.required("name");
            (Audience::read(entry), Overrides::of_account(name))
        });
        Self { site: settings, accounts, list }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    fn open_to<'a>(&'a self, user: &User) -> impl Iterator<Item = &'a Profile> {
        self.list.iter().filter(|profile| profile.is_open_to(user))
    }

    /// The first profile that is marked as default and that this user may choose, or else the first that they may choose.
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

    /// The settings of every lab, and the overrides of the chosen profile and options if the site has profiles.
    pub(crate) fn chosen(&self, user: &User, options: &Options) -> Result<Chosen, Error> {
        let mut chosen = vec![self.site.filled()?];
        let account = self.accounts.iter().find(|(audience, _)| audience.admits(user));
        chosen.extend(account.map(|(_, account)| account.clone()));
        if self.is_empty() {
            return Ok(Chosen(chosen));
        }
        let profile = self.of(user, options)?;
        chosen.push(profile.overrides.filled()?);
        for (name, option) in &profile.options {
            if option.is_for(user) {
                chosen.push(option.chosen(user, name, options)?);
            }
        }
        Ok(Chosen(chosen))
    }
}

impl Profile {
    /// True if the user may choose the profile, and can choose or type a value for each of its options.
    fn is_open_to(&self, user: &User) -> bool {
        self.audience.admits(user) && self.options.values().all(|option| option.is_open_to(user))
    }

    fn read(entry: &mut Section<'_>, site: &Storage) -> Self {
        refused::refuse_beside_override(entry);
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
            audience: Audience::read(entry),
            overrides: overrides.unwrap_or_default(),
            options: entry.map("profile_options", ProfileOption::read),
            display_name,
        }
    }
}

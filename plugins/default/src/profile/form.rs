use wasmspawner_sdk::form::{Choice, Field};
use wasmspawner_sdk::{Denial, Error, FieldError, Options, User};

use super::option::typed_key;
use super::{PROFILE, Profile, Profiles};

impl Profiles {
    /// The field for the profile, and the fields that each profile shows.
    pub(crate) fn fields(&self, user: &User) -> Result<Vec<Field>, Error> {
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let choices = self.open_to(user).map(|profile| Choice {
            value: profile.slug.clone(),
            label: profile.display_name.clone(),
            description: profile.description.clone(),
        });
        let profile = Field::radio(PROFILE, "Server", choices.collect());
        let mut fields = vec![profile.default_choice(&self.default(user)?.slug).required()];
        for profile in self.open_to(user) {
            for (name, option) in &profile.options {
                fields.extend(option.fields(user, name, &profile.key(name), (PROFILE, &profile.slug)));
            }
        }
        Ok(fields)
    }

    /// Converts a submission to the names of the form's fields: programs submit KubeSpawner's `user_options`.
    pub(crate) fn in_form_names(&self, user: &User, submission: &Options) -> Options {
        let mut named = submission.clone();
        // The check of the form reports a profile that does not exist.
        let Ok(profile) = self.of(user, submission) else { return named };
        remove_if_empty(&mut named, PROFILE);
        for (name, option) in &profile.options {
            for (short, long) in profile.names(name) {
                remove_if_empty(&mut named, &short);
                remove_if_empty(&mut named, &long);
                if let (Some(value), None) = (named.get(&short).cloned(), named.get(&long)) {
                    named.insert(long, value);
                    named.remove(&short);
                }
            }
            option.imply_unlisted(user, &profile.key(name), &mut named);
        }
        named
    }

    /// Converts checked options to KubeSpawner's names, and checks the rules that the form's fields cannot express.
    pub(crate) fn in_option_names(
        &self,
        user: &User,
        mut options: Options,
    ) -> Result<Options, Vec<FieldError>> {
        if self.is_empty() {
            return Ok(options);
        }
        let profile = self.of(user, &options).map_err(field_errors)?;
        for (short, long) in profile.options.keys().flat_map(|name| profile.names(name)) {
            if let Some(value) = options.remove(&long) {
                options.insert(short, value);
            }
        }
        self.chosen(user, &options).map_err(field_errors)?;
        Ok(options)
    }

    /// Renames errors to the submitted names, or else to those of the form.
    pub(crate) fn as_submitted(
        &self,
        user: &User,
        submission: &Options,
        mut errors: Vec<FieldError>,
    ) -> Vec<FieldError> {
        let Ok(profile) = self.of(user, submission) else { return errors };
        for (short, long) in profile.options.keys().flat_map(|name| profile.names(name)) {
            let (other, submitted) =
                if submission.get(&short).is_some() { (long, short) } else { (short, long) };
            for error in errors.iter_mut().filter(|error| error.field == other) {
                error.field.clone_from(&submitted);
            }
        }
        errors
    }
}

impl Profile {
    /// The name of the form's field for an option.
    fn key(&self, option: &str) -> String {
        format!("profile-option-{}--{option}", self.slug)
    }

    /// The names of an option's two fields, each in `user_options` and in the form.
    fn names(&self, option: &str) -> [(String, String); 2] {
        let key = self.key(option);
        [(option.to_owned(), key.clone()), (typed_key(option), typed_key(&key))]
    }
}

/// Removes an empty text, which means no choice, as in KubeSpawner.
fn remove_if_empty(submission: &mut Options, name: &str) {
    if submission.text(name) == Some("") {
        submission.remove(name);
    }
}

fn field_errors(error: Error) -> Vec<FieldError> {
    match error {
        Error::Invalid(errors) => errors,
        Error::Denied(Denial { message, .. }) | Error::Internal(message) => {
            vec![FieldError::new("", message)]
        }
        Error::RetryLater(_) => vec![FieldError::new("", "try again later")],
    }
}

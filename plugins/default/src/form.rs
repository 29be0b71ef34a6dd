use wasmspawner_sdk::form::{Field, FormContext};
use wasmspawner_sdk::{Error, FieldError, Options, hooks, submission};

use crate::DefaultPolicy;

/// The maximum number of images that are shown as cards. More images are shown as a list.
const CARDS: usize = 4;

impl hooks::Form for DefaultPolicy {
    fn fields(&self, context: &FormContext) -> Result<Vec<Field>, Error> {
        let user = &context.user;
        let mut fields = Vec::new();
        let images = &self.images.list;
        if !images.is_empty() && !self.images.are_a_menu() {
            let choices = images.choices(user)?;
            let field = if images.len() > CARDS {
                Field::select("image", "Environment", choices)
            } else {
                Field::radio("image", "Environment", choices)
            };
            fields.push(with_default(field, images.default(user).map(|entry| &entry.name)));
        }
        if !self.sizes.is_empty() {
            let field = Field::radio("size", "Size", self.sizes.choices(user)?);
            fields.push(with_default(field, self.sizes.default(user).map(|entry| &entry.name)));
        }
        fields.extend(self.profiles.fields(user)?);
        fields.extend(self.extras.iter().filter_map(|extra| extra.field(user)));
        Ok(fields)
    }

    fn parse(&self, submission: &Options, context: &FormContext) -> Result<Options, Vec<FieldError>> {
        let (profiles, user) = (&self.profiles, &context.user);
        submission::check_form(self.fields(context), &profiles.in_form_names(user, submission))
            .and_then(|options| profiles.in_option_names(user, options))
            .map_err(|errors| profiles.as_submitted(user, submission, errors))
    }
}

fn with_default(field: Field, default: Option<&String>) -> Field {
    let field = field.required();
    match default {
        Some(default) => field.default_choice(default),
        None => field,
    }
}

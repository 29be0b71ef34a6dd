use wasmspawner_sdk::form::{Field, FormContext};
use wasmspawner_sdk::{Error, FieldError, Options, Value, hooks, submission};

use crate::RubinPolicy;
use crate::lab::SIZE;

/// The option for more messages in the lab's log.
pub(crate) const DEBUG: &str = "enable_debug";

/// The option that moves the user's own settings aside.
pub(crate) const RESET: &str = "reset_user_env";

/// The option with the chosen image. The service adds its field to the form, and checks it.
pub(crate) const IMAGE: &str = "image";

impl hooks::Form for RubinPolicy {
    fn fields(&self, context: &FormContext) -> Result<Vec<Field>, Error> {
        Ok(vec![
            self.lab.sizes.field(&context.user)?,
            Field::checkbox(DEBUG, "Enable debug logs", false),
            Field::checkbox(RESET, "Reset user environment", false)
                .help("Moves .cache, .conda, .jupyter, .local and .user_setups aside, for a lab that no longer starts"),
        ])
    }

    /// Checks a submission. Sizes may be capitalized, as programs that use Nublado send them.
    fn parse(&self, submission: &Options, context: &FormContext) -> Result<Options, Vec<FieldError>> {
        let mut submission = submission.clone();
        let image = submission.remove(IMAGE);
        if let Some(size) = submission.text(SIZE).map(str::to_lowercase) {
            submission.insert(SIZE, Value::Text(size));
        }
        let mut options = submission::check_form(self.fields(context), &submission)?;
        if let Some(image) = image {
            options.insert(IMAGE, image);
        }
        Ok(options)
    }
}

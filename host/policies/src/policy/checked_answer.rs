//! Checks the answers of policies, beyond their types.

use wasmspawner_core::images::{self, ImageMenu, WantedImage};
use wasmspawner_core::policy::form::{self, Form};

use crate::errors::CallErrorKind;
use crate::source::spec::PolicySpec;

/// Checks that the form needs no grant that the policy lacks, and that it can be filled in.
pub(crate) fn form(form: Form, of: &PolicySpec) -> Result<Form, CallErrorKind> {
    form::check_grant(of.name.as_str(), &form, &of.grants).map_err(CallErrorKind::NotGranted)?;
    form::check(&form).map_err(CallErrorKind::unusable_form)?;
    Ok(form)
}

/// Checks that users can choose from the menu.
pub(crate) fn menu(menu: Option<ImageMenu>) -> Result<Option<ImageMenu>, CallErrorKind> {
    menu.as_ref().map_or(Ok(()), ImageMenu::check).map_err(CallErrorKind::unusable_menu)?;
    Ok(menu)
}

/// Checks that nodes can pull the images.
pub(crate) fn wanted(wanted: Vec<WantedImage>) -> Result<Vec<WantedImage>, CallErrorKind> {
    images::check_wanted(&wanted).map_err(CallErrorKind::unusable_menu)?;
    Ok(wanted)
}

//! The images from which a user chooses.

use wasmspawner_core::images::{IMAGE, ImageChoice, ImageMenu, MenuEntry, offer, plain_menu};
use wasmspawner_core::policy::compose::Source;
use wasmspawner_core::policy::form::{Field, Form, FormContext, follow_image, image_fields};
use wasmspawner_core::policy::{FieldError, Image, Options, Value};

use crate::context::site_rules::SiteRules;
use crate::errors::SpawnError;

/// The error until a registry has been read for the first time. Before that, nobody knows whether it has an image.
const NOT_READ_YET: SpawnError = SpawnError::RetryLater(10);

/// The images from which a user chooses, and the source of that menu.
#[derive(Clone, Debug)]
pub struct UserMenu {
    /// The policy that has the menu, or the configuration.
    pub source: Source,
    /// The images.
    pub menu: ImageMenu,
}

/// The image that was chosen from a menu.
#[derive(Clone, Debug)]
pub(crate) struct ChosenImage {
    source: Source,
    entry: MenuEntry,
}

/// Returns the user's menu: that of the last policy that has one, or all images of the configured repositories. Returns
/// `None` if the site has neither. A form that has a field `image` itself, or is a policy's own HTML, takes the place
/// of the configured repositories. It does not replace a policy's menu, because that says what a user may choose.
pub(crate) async fn menu(
    rules: &SiteRules<'_>,
    context: &FormContext,
) -> Result<Option<UserMenu>, SpawnError> {
    if let Some(menu) = menu_of_policies(rules, context).await? {
        return Ok(Some(menu));
    }
    let Some(menu) = menu_of_configuration(rules) else { return Ok(None) };
    Ok((!offers_images(&form_of_policies(rules, context, &Options::new()).await?)).then_some(menu))
}

async fn menu_of_policies(
    rules: &SiteRules<'_>,
    context: &FormContext,
) -> Result<Option<UserMenu>, SpawnError> {
    let answer = rules.policies.image_menu(context).await?;
    Ok(answer
        .map(|answer| UserMenu { source: Source::Policy(answer.policy.to_string()), menu: answer.value }))
}

fn menu_of_configuration(rules: &SiteRules<'_>) -> Option<UserMenu> {
    let mut offered = rules.config.images.offered().peekable();
    offered.peek()?;
    let (known, lab) = (rules.policies.inventory().registries(), &rules.config.lab.section);
    let default = lab.image.as_deref().and_then(|image| image.parse().ok());
    let menu = plain_menu(&known, offered, default.as_ref());
    Some(UserMenu { source: Source::Configuration, menu })
}

/// The spawn form: that of a policy, with the menu before its fields. The image in `last`, the submission with which the
/// server was last started, becomes that of the field which offers it today.
pub(crate) async fn form(
    rules: &SiteRules<'_>,
    context: &FormContext,
    last: &mut Options,
) -> Result<Form, SpawnError> {
    let form = form_of_policies(rules, context, last).await?;
    let fields = match form {
        Form::Fields(fields) if !offer_images(&fields) => fields,
        form => return Ok(form),
    };
    let menu = menu_of_policies(rules, context).await?.or_else(|| menu_of_configuration(rules));
    let Some(UserMenu { menu, .. }) = menu else { return Ok(Form::Fields(fields)) };
    let known = rules.policies.inventory();
    let images = image_fields(&offer(&menu, &known.registries(), &known.nodes()));
    follow_image(&images, &menu, last);
    Ok(Form::Fields(images.into_iter().chain(fields).collect()))
}

async fn form_of_policies(
    rules: &SiteRules<'_>,
    context: &FormContext,
    last: &Options,
) -> Result<Form, SpawnError> {
    let answer = rules.policies.render_form_again(context, last).await?;
    Ok(answer.map_or(Form::Fields(Vec::new()), |answer| answer.value))
}

fn offers_images(form: &Form) -> bool {
    match form {
        Form::Html(_) => true,
        Form::Fields(fields) => offer_images(fields),
    }
}

fn offer_images(fields: &[Field]) -> bool {
    fields.iter().any(|field| field.name == IMAGE)
}

/// Parses the submission of a form. The image is taken out of it and looked up in the menu. A policy parses the rest.
pub(crate) async fn parse(
    rules: &SiteRules<'_>,
    submission: &Options,
    context: &FormContext,
) -> Result<(Options, Option<ChosenImage>), SpawnError> {
    let mut rest = submission.clone();
    let chosen = match menu(rules, context).await? {
        Some(menu) => chosen(rules, menu, &mut rest)?,
        None => None,
    };
    let mut options = match rules.policies.parse_submission(&rest, context).await? {
        Some(answer) => answer.value,
        None => rest,
    };
    if let Some(ChosenImage { entry, .. }) = &chosen {
        options.insert(IMAGE.to_owned(), Value::Text(entry.name.clone()));
    }
    Ok((options, chosen))
}

fn chosen(
    rules: &SiteRules<'_>,
    UserMenu { source, menu }: UserMenu,
    options: &mut Options,
) -> Result<Option<ChosenImage>, SpawnError> {
    let is_incomplete = || rules.policies.inventory().registries().is_incomplete();
    match ImageChoice::take(options).entry(&menu) {
        Ok(Some(entry)) => Ok(Some(ChosenImage { source, entry: entry.clone() })),
        // After a start it takes a moment until the registries have answered.
        Ok(None) if is_incomplete() && rules.config.lab.section.image.is_none() => Err(NOT_READ_YET),
        Err(_) if is_incomplete() => Err(NOT_READ_YET),
        Ok(None) => Ok(None),
        Err(error) => Err(SpawnError::Invalid(vec![FieldError::new(IMAGE, error.to_string())])),
    }
}

impl ChosenImage {
    /// The image, and the source of the menu that contains it.
    pub(crate) fn image(&self) -> (Source, Image) {
        let MenuEntry { reference, digest, label, .. } = self.entry.clone();
        (self.source.clone(), Image { reference, digest, description: Some(label) })
    }
}

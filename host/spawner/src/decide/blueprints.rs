//! The blueprints of a lab: the choice of one, and its resolution.

use std::sync::Arc;
use std::time::Duration;

use wasmspawner_core::config::{ProviderConfig, ProviderFields};
use wasmspawner_core::custom_resource::blueprint::{CHOICE, ForeignBlueprint, Library, REPOSITORY, Resolved};
use wasmspawner_core::names::{ObjectName, ServerName, Username};
use wasmspawner_core::policy::form::{Choice, ChoiceInput, Field, FieldKind, Form, FormContext, TextInput};
use wasmspawner_core::policy::spawn::SpawnRequest;
use wasmspawner_core::policy::user_string::{Repository, Wanted};
use wasmspawner_core::policy::{FieldError, Options, User, Value};
use wasmspawner_core::record::LabDescription;
use wasmspawner_core::users::identity::Identity;
use wasmspawner_core::values::secret::SecretString;
use wasmspawner_core::workload::{WORKLOAD, Workload};

use crate::context::site_rules::SiteRules;
use crate::errors::SpawnError;

/// The blueprints that apply to a lab, and the choice that led to them.
#[derive(Clone, Default)]
pub(crate) struct Chosen {
    /// All blueprints together; `None` if there are none.
    pub(crate) resolved: Option<Arc<Resolved>>,
    /// The blueprint among them that the site has not written.
    pub(crate) foreign: Option<Arc<ForeignBlueprint>>,
    /// The options with which the blueprints were chosen.
    options: Options,
}

impl Chosen {
    /// Notes the choice in the options that the policies have parsed.
    pub(crate) fn note(&self, options: &mut Options) {
        options.extend(self.options.clone());
    }

    fn new(
        library: &Library,
        chosen: Option<&ObjectName>,
        foreign: Option<ForeignBlueprint>,
        option: &str,
        user: &User,
    ) -> Result<Self, SpawnError> {
        let groups = user.group_names();
        let resolved = match &foreign {
            Some(foreign) => library.resolve_foreign(foreign, &groups),
            None => library.resolve(chosen, &groups),
        };
        let resolved = resolved.map_err(|error| refused(option, &error))?;
        for overlap in resolved.iter().flat_map(|resolved| &resolved.overlaps) {
            tracing::warn!(blueprint = chosen.map(ObjectName::as_str), %overlap, "two blueprints disagree");
        }
        Ok(Self { resolved: resolved.map(Arc::new), foreign: foreign.map(Arc::new), options: Options::new() })
    }
}

/// Chooses the blueprints of a lab that is to be started. Their values are put into the request's options in place of
/// the choice, which policies do not parse. A server with the name of a blueprint uses that blueprint, unless another
/// one was chosen.
pub(crate) async fn choose(
    rules: &SiteRules<'_>,
    request: &mut SpawnRequest,
    user: &User,
) -> Result<Chosen, SpawnError> {
    let (library, providers) = (&rules.blueprints.library, &rules.config.blueprint_providers);
    if library.is_empty() && providers.is_empty() && request.wanted.is_nothing() {
        // The options may be those of a policy's form.
        return Ok(Chosen::default());
    }
    let mut wanted = request.wanted.clone();
    let of_option = text(&mut request.options, CHOICE);
    let of_form = text(&mut request.options, REPOSITORY);
    if wanted.blueprint.is_none() {
        let parsed = of_option.map(ObjectName::parse).transpose();
        wanted.blueprint = parsed.map_err(|error| refused(CHOICE, &error))?;
    }
    if wanted.repository.is_none() {
        let parsed = of_form.map(|text| Repository::parse(&text)).transpose();
        wanted.repository = parsed.map_err(|error| refused(REPOSITORY, &error))?;
    }
    if wanted.blueprint.is_none() && wanted.repository.is_none() {
        wanted.blueprint = of_server(library, &request.key.server, &user.group_names());
    }
    let foreign = foreign(rules, &request.key.user, &request.token, &wanted).await?;
    let option = if wanted.repository.is_some() { REPOSITORY } else { CHOICE };
    let mut chosen = Chosen::new(library, wanted.blueprint.as_ref(), foreign, option, user)?;
    if let Some(resolved) = &chosen.resolved {
        resolved.change(&mut request.options);
    }
    let named = [
        (CHOICE, wanted.blueprint.map(String::from)),
        (REPOSITORY, wanted.repository.map(|repository| repository.to_string())),
        (WORKLOAD, wanted.workload.map(|workload| workload.to_string())),
    ];
    let named = named.into_iter().filter_map(|(name, value)| Some((name.to_owned(), Value::Text(value?))));
    chosen.options = named.collect();
    Ok(chosen)
}

/// Resolves the blueprint of this name for a lab of the user: a blueprint of the site, or else one of the user's own.
/// `token` is the user's token, for the provider of the latter.
pub(crate) async fn resolve(
    rules: &SiteRules<'_>,
    user: &Identity,
    name: ObjectName,
    token: &SecretString,
) -> Result<Option<Arc<Resolved>>, SpawnError> {
    let wanted = Wanted { blueprint: Some(name), ..Wanted::default() };
    let foreign = foreign(rules, &user.username, token, &wanted).await?;
    let library = &rules.blueprints.library;
    Ok(Chosen::new(library, wanted.blueprint.as_ref(), foreign, CHOICE, &User::from(user))?.resolved)
}

/// Takes the workload that a form asks for out of the options, where the site offers labs in workloads at all.
pub(crate) fn take_workload(rules: &SiteRules<'_>, request: &mut SpawnRequest) -> Result<(), SpawnError> {
    if rules.config.workloads.namespaces.is_empty() {
        // The option may be that of a policy's form.
        return Ok(());
    }
    let of_form = text(&mut request.options, WORKLOAD);
    if request.wanted.workload.is_none() {
        let parsed = of_form.map(|text| Workload::parse(&text)).transpose();
        request.wanted.workload = parsed.map_err(|error| refused(WORKLOAD, &error))?;
    }
    Ok(())
}

/// Returns the blueprints of a running lab, for its children. Blueprints that the site has not written are not read
/// again.
pub(crate) fn of_lab(
    rules: &SiteRules<'_>,
    lab: &LabDescription,
    options: &mut Options,
    user: &User,
) -> Result<Chosen, SpawnError> {
    let (library, providers) = (&rules.blueprints.library, &rules.config.blueprint_providers);
    if library.is_empty() && providers.is_empty() {
        return Ok(Chosen::default());
    }
    let named: Options =
        [CHOICE, REPOSITORY].into_iter().filter_map(|name| options.remove_entry(name)).collect();
    let chosen = match named.get(CHOICE) {
        Some(Value::Text(name)) => ObjectName::parse(name.as_str()).ok(),
        _ => None,
    };
    let chosen = Chosen::new(library, chosen.as_ref(), lab.foreign_blueprint.clone(), CHOICE, user)?;
    if let Some(resolved) = &chosen.resolved {
        resolved.change(options);
    }
    Ok(Chosen { options: named, ..chosen })
}

/// Reads the blueprint of a repository, or of the user, if one of them is wanted. It extends the blueprint that is
/// wanted along with it.
async fn foreign(
    rules: &SiteRules<'_>,
    user: &Username,
    token: &SecretString,
    wanted: &Wanted,
) -> Result<Option<ForeignBlueprint>, SpawnError> {
    let (library, providers) = (&rules.blueprints.library, &rules.config.blueprint_providers);
    let (provider, option, beside) = match (&wanted.repository, &wanted.blueprint) {
        (Some(_), beside) => match &providers.repository {
            Some(provider) => (provider, REPOSITORY, beside.as_ref()),
            None => {
                return Err(SpawnError::NotOffered("this site has no provider of repositories' blueprints"));
            }
        },
        (None, Some(name)) if !library.has(name) => match &providers.user {
            Some(provider) => (provider, CHOICE, None),
            None => return Ok(None),
        },
        _ => return Ok(None),
    };
    let fields = ProviderFields {
        username: user.as_str(),
        repo: wanted.repository.as_ref().map_or("", Repository::as_str),
        blueprint: wanted.blueprint.as_ref().map_or("", ObjectName::as_str),
    };
    let mut spec = read(rules, provider, fields, token).await.map_err(|error| refused(option, &error))?;
    spec.extends.splice(0..0, beside.cloned());
    let name = match &wanted.repository {
        Some(_) => ObjectName::parse(wanted.server().as_str()),
        None => ObjectName::parse(fields.blueprint),
    };
    let name = name.map_err(|error| refused(option, &error))?;
    ForeignBlueprint::new(name, spec).map(Some).map_err(|error| refused(option, &error))
}

async fn read(
    rules: &SiteRules<'_>,
    provider: &ProviderConfig,
    fields: ProviderFields<'_>,
    token: &SecretString,
) -> Result<
    wasmspawner_core::custom_resource::blueprint::BlueprintSpec,
    crate::blueprint_providers::ProviderError,
> {
    let within = Duration::try_from(rules.config.blueprint_providers.timeout).unwrap_or_default();
    rules.providers.read(provider, &provider.url(fields), token, within).await
}

/// Takes a text out of the options; an empty one counts as none.
fn text(options: &mut Options, name: &str) -> Option<String> {
    options.remove(name).map(|value| value.to_string()).filter(|text| !text.is_empty())
}

/// Puts the choices of a blueprint and of a repository before the fields of a form. A policy's own HTML stays as it is,
/// and so does the form of a server that is named after its blueprint.
pub(crate) fn offer(rules: &SiteRules<'_>, context: &FormContext, form: Form) -> Form {
    let Form::Fields(fields) = form else { return form };
    let library = &rules.blueprints.library;
    let groups = context.user.group_names();
    let server = ServerName::parse(context.server.as_str()).unwrap_or_default();
    if of_server(library, &server, &groups).is_some() {
        return Form::Fields(fields);
    }
    let choice = choice(library, &groups);
    let repository = rules.config.blueprint_providers.repository.as_ref().map(|_| repository());
    Form::Fields(choice.into_iter().chain(repository).chain(fields).collect())
}

fn choice(library: &Library, groups: &[String]) -> Option<Field> {
    let mut choices = library.choices(groups).peekable();
    choices.peek()?;
    let none = Choice { value: String::new(), label: "None".to_owned(), description: None };
    let choices = choices.map(|(name, spec)| Choice {
        value: name.to_string(),
        label: spec.display_name.clone().unwrap_or_else(|| name.to_string()),
        description: spec.description.clone(),
    });
    let input =
        ChoiceInput { choices: [none].into_iter().chain(choices).collect(), default: Some(String::new()) };
    let help = "What a blueprint says counts over the choices below.";
    Some(field(CHOICE, "Blueprint", help, FieldKind::Select(input)))
}

fn repository() -> Field {
    let input = TextInput {
        placeholder: Some("organization/project".to_owned()),
        max_length: Some(200),
        ..TextInput::default()
    };
    field(
        REPOSITORY,
        "Repository",
        "The lab is as the repository's own blueprint says.",
        FieldKind::Text(input),
    )
}

fn field(name: &str, label: &str, help: &str, kind: FieldKind) -> Field {
    Field {
        name: name.to_owned(),
        label: label.to_owned(),
        help: Some(help.to_owned()),
        kind,
        group: None,
        required: false,
        visible_when: None,
        notice: None,
    }
}

/// The blueprint with the name of the server, if the user may choose it.
fn of_server(library: &Library, server: &ServerName, groups: &[String]) -> Option<ObjectName> {
    library.choices(groups).map(|(name, _)| name).find(|name| name.as_str() == server.as_str()).cloned()
}

fn refused(option: &str, problem: &impl std::error::Error) -> SpawnError {
    SpawnError::Invalid(vec![FieldError::new(option, problem.to_string())])
}

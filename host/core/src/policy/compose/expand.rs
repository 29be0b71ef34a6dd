//! Expands template fields in the answers of policies.
//!
//! Only names and paths of storage are expanded (claim names, `sub_path`, the paths of NFS and node, the names of
//! `ConfigMap`s and Secrets), and only if nothing that the user could choose contains a brace. The host cannot know
//! which part of a policy's text came from the user. But if no option, name, group or mail address contains a brace, no
//! brace in the answer can be the user's. A spawn with both a user's brace and a template to expand is refused, because
//! using the template literally would put different users into the same directory.
//!
//! The same applies to `$(NAME)` in commands and arguments, which Kubernetes expands.

use super::{ChainAnswer, SpawnInputs, SpawnRejected};
use crate::names::{Fields, Template, TemplateScope};
use crate::policy::spawn::SpawnRequest;
use crate::policy::{Customization, EnvValue, EnvVar, FieldError, Mount, Value, VolumeSource};

/// The longest name or path that a template may become, in bytes: the longest path on Linux.
const MAX_EXPANDED_BYTES: usize = 4096;

/// Returns the answers, and the grants that contain templates, with templates expanded.
pub(super) fn expand(inputs: &SpawnInputs<'_>) -> Result<Vec<ChainAnswer>, SpawnRejected> {
    let brace = user_text_with(&inputs.request, |text| text.contains(['{', '}']));
    let variable = user_text_with(&inputs.request, |text| {
        // The other part of `$(NAME)` may be the policy's.
        text.contains("$(") || text.ends_with('$') || text.starts_with('(')
    });
    let fields = &inputs.names.fields;
    inputs
        .answers
        .iter()
        .map(|answer| {
            if let Some(place) = &variable {
                refuse_variables(answer, place)?;
            }
            expand_answer(answer, fields, brace.as_deref())
        })
        .collect()
}

/// Describes where the request contains a text that the user could choose and for which `marked` is true.
fn user_text_with(request: &SpawnRequest, marked: impl Fn(&str) -> bool) -> Option<String> {
    let identity = &request.identity;
    let option = request
        .options
        .iter()
        .find(|(name, value)| marked(name) || matches!(value, Value::Text(text) if marked(text)));
    let named = |wrong: bool, name: &str| wrong.then(|| name.to_owned());
    option
        .map(|(name, _)| format!("the option `{name}`"))
        .or_else(|| named(marked(request.key.server.as_str()), "the server's name"))
        .or_else(|| named(marked(identity.username.as_str()), "the username"))
        .or_else(|| named(identity.email.as_deref().is_some_and(&marked), "the mail address"))
        .or_else(|| named(identity.display_name.as_deref().is_some_and(&marked), "the display name"))
        .or_else(|| named(identity.groups.iter().any(|group| marked(&group.name)), "a group's name"))
}

/// Refuses commands with `$(NAME)`, because Kubernetes would expand text of the user together with that of the policy.
fn refuse_variables(answer: &ChainAnswer, place: &str) -> Result<(), SpawnRejected> {
    let asked = &answer.customization;
    let labs = asked.command.iter().chain(&asked.args).flatten();
    let inits = asked.init_containers.iter().flat_map(|init| init.command.iter().chain(&init.args));
    if !labs.chain(inits).any(|word| word.contains("$(")) {
        return Ok(());
    }
    let author = &answer.author;
    let message = format!(
        "{place} contains `$(` or a part of it, which cannot be used where the site has variables in a command ({author})"
    );
    Err(SpawnRejected::request(vec![FieldError::new("options", message)]))
}

fn expand_answer(
    answer: &ChainAnswer,
    fields: &Fields,
    brace: Option<&str>,
) -> Result<ChainAnswer, SpawnRejected> {
    let mut answer = answer.clone();
    let mut refused = Vec::new();
    for (field, text) in places(&mut answer.customization) {
        if !text.contains(['{', '}']) {
            continue;
        }
        if let Some(place) = brace {
            let message = format!(
                "{place} contains a brace, which cannot be used where the site names storage by templates (`{field}` of \
                 the {})",
                answer.author
            );
            return Err(SpawnRejected::request(vec![FieldError::new("options", message)]));
        }
        match Template::parse(&field, text, TemplateScope::Lab)
            .map(|it| it.render_within(MAX_EXPANDED_BYTES, fields))
        {
            Ok(Some(expanded)) => *text = expanded,
            Ok(None) => refused
                .push(FieldError::new(field, format!("becomes longer than {MAX_EXPANDED_BYTES} bytes"))),
            Err(error) => refused.push(FieldError::new(field, error.problem.to_string())),
        }
    }
    if !refused.is_empty() {
        return Err(SpawnRejected::by(&answer.author, refused));
    }
    let granted = answer.grants.secrets.iter_mut().chain(&mut answer.grants.host_path);
    for text in granted.filter(|text| text.contains(['{', '}'])) {
        match Template::parse("grants", text, TemplateScope::Lab) {
            Ok(template) => *text = template.render(fields),
            Err(error) => {
                return Err(SpawnRejected::operator(
                    format!("grants of `{}`", answer.author.name()),
                    error.to_string(),
                ));
            }
        }
    }
    Ok(answer)
}

/// Returns all strings of an answer that are expanded, with their paths.
fn places(asked: &mut Customization) -> Vec<(String, &mut String)> {
    let mut places = Vec::new();
    for (at, volume) in asked.volumes.iter_mut().enumerate() {
        let path = |field: &str| format!("volumes[{at}].source.{field}");
        match &mut volume.source {
            VolumeSource::Nfs(nfs) => places.push((path("nfs.path"), &mut nfs.path)),
            VolumeSource::Claim(claim) => places.push((path("claim.claim_name"), &mut claim.claim_name)),
            VolumeSource::ConfigMap(object) => places.push((path("config_map.name"), &mut object.name)),
            VolumeSource::Secret(object) => places.push((path("secret.name"), &mut object.name)),
            VolumeSource::HostPath(host) => places.push((path("host_path"), host)),
            VolumeSource::EmptyDir(_) => {}
        }
    }
    sub_paths("", &mut asked.mounts, &mut places);
    secret_names("", &mut asked.env, &mut places);
    for (at, init) in asked.init_containers.iter_mut().enumerate() {
        sub_paths(&format!("init_containers[{at}]."), &mut init.mounts, &mut places);
        secret_names(&format!("init_containers[{at}]."), &mut init.env, &mut places);
    }
    places
}

fn sub_paths<'a>(prefix: &str, mounts: &'a mut [Mount], places: &mut Vec<(String, &'a mut String)>) {
    for (at, mount) in mounts.iter_mut().enumerate() {
        if let Some(path) = &mut mount.sub_path {
            places.push((format!("{prefix}mounts[{at}].sub_path"), path));
        }
    }
}

fn secret_names<'a>(prefix: &str, env: &'a mut [EnvVar], places: &mut Vec<(String, &'a mut String)>) {
    for (at, var) in env.iter_mut().enumerate() {
        if let EnvValue::SecretRef(key) = &mut var.value {
            places.push((format!("{prefix}env[{at}].value.secret_ref.name"), &mut key.name));
        }
    }
}

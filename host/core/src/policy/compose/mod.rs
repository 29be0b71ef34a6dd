//! Composes one lab from the answers of a chain of policies: merges them in order, checks them against rules and
//! grants, and records which policy decided what.

mod env;
mod expand;
mod foreign_parts;
mod image;
mod inputs;
mod lab_files;
mod lab_server;
mod limits;
mod merge;
mod pin;
mod provenance;
mod references;
mod rejected;
mod secrets;
mod service_url;
mod validated;
mod verdict;
mod workload_access;

pub use crate::values::credential::REDACTED;
pub use env::{LabEnv, LabValue};
pub use image::IMAGE_OF_LAB;
pub use inputs::{ImageInputs, PodOwner, SpawnInputs};
pub use lab_server::CheckedProbe;
pub use provenance::{Conflict, FieldsBySource, GrantUse, Provenance, Source};
pub use rejected::{RejectionBlame, SpawnRejected};
pub use validated::{CERTIFICATE_PATH, ValidatedSpawn};
pub(crate) use validated::{TLS_CERTIFICATE, TLS_KEY};
pub use verdict::all_allow;
pub use workload_access::check_access;

use merge::Merged;

use super::lifted::LiftRules;
use super::{
    AffinityPreset, Author, ChainAnswer, FieldError, InitRun, Lifted, check_customization, check_lab_files,
    check_lab_server, grants, pod_patch,
};
use crate::config::administrators::Lift;
use crate::config::grants::{Grants, Need};
use crate::config::lab::{LabConfig, SecurityLifts};
use crate::names::{LabNames, LabelValue, ObjectName};
use crate::users::identity::Identity;

/// Composes a spawn. All errors of a spawn are found here; each says who has to correct it.
pub fn compose(inputs: SpawnInputs<'_>) -> Result<ValidatedSpawn, SpawnRejected> {
    let mut provenance = Provenance::default();
    check_identity(&inputs.request.identity)?;
    let mut answers = expand::expand(&inputs)?;
    let lifts = lift_rules(&inputs);
    for answer in &mut answers {
        lifts.strip(&answer.grants, &mut answer.customization);
    }
    let mut lifted = Lifted::default();
    for answer in &answers {
        lifted.add(&check_answer(answer, inputs.lab, lifts, &mut provenance)?);
    }
    foreign_parts::check(&answers, lifts)?;
    check_deciders(&answers, &inputs.images, &lifted, lifts)?;
    let mut merged = merge(answers, &inputs, &mut provenance);
    let pod_patches = std::mem::take(&mut merged.pod_patches);
    let existing_account = existing_account(&mut merged, &inputs, &mut provenance)?;
    check_storage(&merged, &inputs, &provenance)?;
    let quota = limits::quota(&inputs, &mut provenance);
    limits::check_quota(&merged, &quota)?;
    let image = image::image(&merged, &inputs, &mut provenance)?;
    merged.use_image_of_lab(&image);
    merged.image = Some(image.clone());
    let port = lab_server::port(&merged.server, inputs.port, &inputs.lab.section, &mut provenance);
    let env = env::lab_env(&inputs, &merged, port, &mut provenance)?;
    let probe = lab_server::probe(merged.server, &inputs.lab.section, &env, &mut provenance);
    record_security_source(inputs.lab.section.security, &mut provenance);
    let (site_secrets, pull_secret) = secrets::site_secrets(&inputs)?;
    let site_labels = site_labels(&inputs)?;

    let config = &inputs.lab.section;
    let fields = &inputs.names.fields;
    let site_annotations = inputs.lab.annotations(fields);
    Ok(ValidatedSpawn {
        image,
        env,
        port,
        serves_tls: false,
        probe,
        site_labels,
        site_annotations: site_annotations.into_iter().map(|(key, value)| (key.into(), value)).collect(),
        labels: merged.labels,
        annotations: merged.annotations,
        resources: merged.resources,
        tolerations: merged.tolerations,
        node_selector: merged.node_selector,
        affinity: merged.affinity.unwrap_or(AffinityPreset::None),
        volumes: merged.volumes,
        mounts: merged.mounts,
        files: merged.files,
        lifted,
        init_containers: merged.init_containers,
        command: or_site(merged.command, config.command.clone(), "command", &mut provenance),
        args: or_site(merged.args, config.args.clone(), "args", &mut provenance),
        working_dir: or_site(
            merged.working_dir,
            inputs.lab.working_dir(fields),
            "working_dir",
            &mut provenance,
        ),
        time_limits: limits::time_limits(merged.time_limits, config.max_time_limits, &mut provenance),
        environment_class: merged.environment_class,
        quota,
        token: inputs.request.token,
        site_secrets,
        pull_secret,
        config: config.clone(),
        namespaces: inputs.lab.namespaces,
        instance: inputs.lab.instance.clone(),
        provenance,
        pod_patches,
        key: inputs.request.key,
        job_id: inputs.job_id,
        spawn: inputs.spawn,
        identity: inputs.request.identity,
        options: inputs.request.options,
        has_own_account: existing_account.is_none(),
        names: match existing_account {
            Some(service_account) => LabNames { service_account, ..inputs.names },
            None => inputs.names,
        },
    })
}

/// Checks the UID and the GIDs. Labs never run as root, and Kubernetes accepts no UID or GID above 2^31-1.
fn check_identity(identity: &Identity) -> Result<(), SpawnRejected> {
    if identity.uid == 0 {
        let message = "the user has the uid 0; labs do not run as root: give the user another uid";
        return Err(SpawnRejected::operator("identity.uid", message));
    }
    let numbers = [identity.uid, identity.gid].into_iter().chain(identity.supplemental_gids());
    match numbers.into_iter().find(|number| i32::try_from(*number).is_err()) {
        Some(number) => {
            let message =
                format!("Kubernetes takes no uid or gid above {}, and this user has {number}", i32::MAX);
            Err(SpawnRejected::operator("identity", message))
        }
        None => Ok(()),
    }
}

fn lift_rules<'a>(inputs: &'a SpawnInputs<'_>) -> LiftRules<'a> {
    let section = &inputs.lab.section;
    let site = section.administrators.as_ref().filter(|_| inputs.pod == PodOwner::Lab);
    LiftRules {
        container: section.container.as_str(),
        site: site.map(|site| (site, &inputs.request.identity)),
        is_child: inputs.pod == PodOwner::Child,
    }
}

/// Checks that every author of a lab with less than the baseline may lift the same: what runs in the lab's container, from
/// its environment or its volumes, has these rights.
fn check_deciders(
    answers: &[ChainAnswer],
    images: &ImageInputs,
    lifted: &Lifted,
    lifts: LiftRules<'_>,
) -> Result<(), SpawnRejected> {
    let refused = |author: &Author, lift: &Lift| {
        let message = format!(
            "the lab is one of an administrator, with `{lift}`, and the {author} decides about it without the grant \
             `administrators` for that"
        );
        Err(SpawnRejected::by(author, vec![FieldError::new("administrators", message)]))
    };
    let lift_without = |grants: &Grants| lifted.parts().find(|lift| !lifts.allow(grants, lift));
    for answer in answers.iter().filter(|answer| answer.decides_something()) {
        if let Some(lift) = lift_without(&answer.grants) {
            return refused(&answer.author, lift);
        }
    }
    // The policy of the menu may have answered nothing else.
    if let Some((Source::Policy(name), _)) = &images.chosen {
        let author = Author::Policy(name.clone());
        let grants = answers.iter().find(|answer| answer.author == author).map(|answer| &answer.grants);
        if let Some(lift) = lift_without(grants.unwrap_or(&Grants::default())) {
            return refused(&author, lift);
        }
    }
    Ok(())
}

/// Checks that an answer is valid for Kubernetes and within the grants of its policy. Returns the settings that needed a
/// grant.
fn check_answer(
    answer: &ChainAnswer,
    lab: &LabConfig,
    lifts: LiftRules<'_>,
    provenance: &mut Provenance,
) -> Result<Vec<Need>, SpawnRejected> {
    let mut errors = check_customization(&answer.customization);
    errors.extend(check_lab_server(&answer.server));
    errors.extend(check_lab_files(&answer.files));
    if !errors.is_empty() {
        return Err(SpawnRejected::by(&answer.author, errors));
    }
    let reserved = |name: &str| lab.reserves(name);
    let used = grants::check(answer, lifts, reserved).map_err(|violations| {
        let details = violations.iter().map(|one| FieldError::new(one.field.clone(), one.to_string()));
        SpawnRejected::by(&answer.author, details.collect())
    })?;
    provenance.grants.extend(used.iter().map(|need| GrantUse {
        policy: answer.author.name().to_owned(),
        field: need.field.clone(),
        grant: need.grant,
    }));
    Ok(used)
}

/// Merges all answers. Leaves out init containers for provisioning if the user is provisioned already.
fn merge(answers: Vec<ChainAnswer>, inputs: &SpawnInputs<'_>, provenance: &mut Provenance) -> Merged {
    let mut merged = Merged::default();
    if let Some((source, image)) = &inputs.images.chosen {
        provenance.put("image", source, &mut merged.image, image.clone());
    }
    for answer in answers {
        let by = answer.author.source();
        if let Some(patch) = answer.customization.pod_patch.as_deref() {
            // Invalid patches were refused before.
            merged.pod_patches.extend(pod_patch::parse(patch).ok());
            if let Some(name) = pod_patch::reach(patch).service_account {
                provenance.put("service_account", &by, &mut merged.service_account, name);
            }
        }
        let component = answer.component.map(|component| (answer.author.name().to_owned(), component));
        provenance.components.extend(component);
        let customization = lab_files::with_files(answer.customization, &answer.files);
        merged.add(&by, customization, provenance);
        merged.add_server(&by, answer.server, provenance);
        merged.add_files(&by, answer.files, provenance);
    }
    merged.init_containers.retain(|init| init.run == InitRun::Always || !inputs.provisioned);
    merged
}

/// Returns the existing service account of the lab: that of a policy, or else that of the site.
fn existing_account(
    merged: &mut Merged,
    inputs: &SpawnInputs<'_>,
    provenance: &mut Provenance,
) -> Result<Option<ObjectName>, SpawnRejected> {
    let of_site = inputs.lab.section.service_account.clone();
    let name = or_site(merged.service_account.take(), of_site, "service_account", provenance);
    if name.as_ref() == Some(&inputs.names.service_account) {
        let message = format!(
            "`{}` is the name of the lab's own account, which the service makes and deletes; name another account, or change \
             `names.service_account`",
            inputs.names.service_account
        );
        return Err(SpawnRejected::operator("service_account", message));
    }
    Ok(name)
}

/// Checks that every mount has a volume, that no volume uses a name of the service's own, and that every file has a path of
/// its own. This is only known after the merge.
fn check_storage(
    merged: &Merged,
    inputs: &SpawnInputs<'_>,
    provenance: &Provenance,
) -> Result<(), SpawnRejected> {
    let config = &inputs.lab.section;
    let blamed = |field: String, message: String| match provenance.sources.get(&field) {
        Some(Source::Policy(policy)) => {
            SpawnRejected::by(&Author::Policy(policy.clone()), vec![FieldError::new(field, message)])
        }
        Some(Source::Blueprint(name)) => {
            SpawnRejected::by(&Author::Blueprint(name.clone()), vec![FieldError::new(field, message)])
        }
        _ => SpawnRejected::operator(field, message),
    };
    let exists = |name: &str| merged.volumes.iter().any(|volume| volume.name == name);
    for mount in &merged.mounts {
        let field = format!("mounts.{}", mount.path);
        if !exists(&mount.volume) {
            return Err(blamed(field, format!("no policy gives a volume `{}`", mount.volume)));
        }
        if config.secrets_path.as_deref() == Some(mount.path.trim_end_matches('/')) {
            return Err(blamed(field, "is where the lab finds its secrets (`lab.secrets_path`)".to_owned()));
        }
        if config.files.contains_key(mount.path.trim_end_matches('/')) {
            return Err(blamed(field, "is a file of the site (`lab.files`)".to_owned()));
        }
        if mount.path.trim_end_matches('/') == CERTIFICATE_PATH {
            return Err(blamed(field, "is where the lab finds its certificate".to_owned()));
        }
    }
    if let Some((path, problem)) = lab_files::problem(merged, config) {
        return Err(blamed(format!("files.{path}"), problem));
    }
    for init in &merged.init_containers {
        let field = format!("init_containers.{}", init.name);
        if init.name == config.container.as_str() {
            return Err(blamed(field, "is the name of the lab's own container".to_owned()));
        }
        if let Some(mount) = init.mounts.iter().find(|mount| !exists(&mount.volume)) {
            return Err(blamed(field, format!("no policy gives a volume `{}`", mount.volume)));
        }
    }
    Ok(())
}

/// Records who decided the security settings of the lab.
fn record_security_source(lifts: SecurityLifts, provenance: &mut Provenance) {
    for (field, lifted) in [
        ("privilege_escalation", lifts.privilege_escalation),
        ("default_capabilities", lifts.default_capabilities),
        ("unconfined_seccomp", lifts.unconfined_seccomp),
        ("service_account_token", lifts.service_account_token),
        ("no_app_armor", lifts.no_app_armor),
    ] {
        let source = if lifted { Source::Configuration } else { Source::Baseline };
        provenance.set(format!("security.{field}"), &source);
    }
}

fn or_site<T>(asked: Option<T>, site: Option<T>, field: &str, provenance: &mut Provenance) -> Option<T> {
    if asked.is_none() && site.is_some() {
        provenance.set(field, &Source::Configuration);
    }
    asked.or(site)
}

/// Renders the site's labels. Because they are templates, only their rendered values can be checked as labels.
fn site_labels(
    inputs: &SpawnInputs<'_>,
) -> Result<std::collections::BTreeMap<String, String>, SpawnRejected> {
    let labels = inputs.lab.labels(&inputs.names.fields);
    labels
        .into_iter()
        .map(|(key, value)| match LabelValue::parse(value) {
            Ok(value) => Ok((key.into(), value.into())),
            Err(error) => Err(SpawnRejected::operator(format!("lab.labels.{key}"), error.to_string())),
        })
        .collect()
}

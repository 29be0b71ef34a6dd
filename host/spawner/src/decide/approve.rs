//! Approves a request: checks that it is valid, allowed and within the limits. This is the part of a decision that the
//! caller waits for.

use std::collections::BTreeMap;
use std::sync::Arc;

use wasmspawner_core::children::dask::PoolLaunch;
use wasmspawner_core::children::kernel::Launch;
use wasmspawner_core::config::lab::{Entrance, LabService};
use wasmspawner_core::custom_resource::blueprint::{CHOICE, REPOSITORY};
use wasmspawner_core::images::IMAGE;
use wasmspawner_core::lifecycle::Operation;
use wasmspawner_core::manifest::ParentPod;
use wasmspawner_core::names::lab::JobId;
use wasmspawner_core::names::spawn_key::SpawnKey;
use wasmspawner_core::names::{ChildName, LabNames, WorkerGroupName};
use wasmspawner_core::policy::compose::{REDACTED, Source};
use wasmspawner_core::policy::form::FormContext;
use wasmspawner_core::policy::kept_request::KeptRequest;
use wasmspawner_core::policy::spawn::{Child, ChildRequest, SpawnRequest};
use wasmspawner_core::policy::user_string::Wanted;
use wasmspawner_core::policy::{
    Action, AuthorizeRequest, Image, Options, Subject, SubjectBlueprint, SubjectChild, User,
};
use wasmspawner_core::record::{
    GroupDescription, KernelDescription, LabDescription, Place, PlaceKind, PlaceWorkload, PoolDescription,
};
use wasmspawner_core::users::quota::{Quota, Usage};
use wasmspawner_core::values::digest::Digest;
use wasmspawner_core::values::secret::SecretString;
use wasmspawner_core::workload::Workload;

use super::blueprints;
use super::blueprints::Chosen;
use super::child_limits::{allow_another, allow_workers, follow_rules_of_site};
use super::image_menu;
use super::permission::{authorize, forbidden, limits, quotas};
use super::programs;
use super::running_lab::RunningLab;
use super::user_use::UserUse;
use crate::context::Context;
use crate::context::site_rules::SiteRules;
use crate::errors::SpawnError;
use crate::published::snapshot::LabDetails;

/// A request that the policies have approved. Its options are parsed and its names are known.
#[derive(Clone)]
pub(crate) struct Approved {
    pub(crate) request: SpawnRequest,
    pub(crate) names: LabNames,
    pub(crate) user: User,
    /// The subject of the questions to the policies.
    pub(crate) subject: Subject,
    /// The blueprints that apply to the request. A child has those of its lab.
    pub(crate) blueprints: Chosen,
    pub(crate) quotas: Vec<(Source, Quota)>,
    /// The chosen image and its source. A child has the image of its lab, unless the request chooses another.
    pub(crate) image: Option<(Source, Image)>,
    /// True for a child that has the image of its lab, whatever policies say about that image today.
    pub(crate) keeps_image: bool,
    pub(crate) child: Option<Arc<ApprovedChild>>,
    /// Where the namespace comes from: for a lab, the configuration or a workload, until the lab has an environment. A
    /// child is where its lab is.
    pub(crate) place: PlaceKind,
    /// How JupyterHub reaches the lab.
    pub(crate) entrance: Entrance,
    /// The request as it came, with which another process could go on.
    pub(crate) kept: Option<Arc<KeptRequest>>,
}

/// The part of an approved spawn that only a child has.
pub(crate) struct ApprovedChild {
    pub(crate) launch: ChildLaunch,
    pub(crate) lab: ParentPod,
    /// The scheduler of a pool, if its options differ from those of the pool.
    pub(crate) scheduler: Option<Choice>,
    /// The groups of workers of a pool.
    pub(crate) groups: Vec<(WorkerGroupName, Choice)>,
}

/// The options and the image of a child, or of a part of it.
#[derive(Clone)]
pub(crate) struct Choice {
    options: Options,
    image: Option<(Source, Image)>,
    /// True if the image is that of the lab.
    keeps_image: bool,
}

impl Choice {
    /// Returns this choice with other options in place of some of its own. The policies read them, as they do with a
    /// submission of the form.
    async fn replace(
        &self,
        rules: &SiteRules<'_>,
        mut replaced: Options,
        context: &FormContext,
    ) -> Result<Self, SpawnError> {
        replaced.retain(|name, _| !matches!(name.as_str(), CHOICE | REPOSITORY));
        if replaced.is_empty() {
            return Ok(self.clone());
        }
        let keeps_image = self.keeps_image && !replaced.contains_key(IMAGE);
        let mut options = self.options.clone();
        // The lab's image may have left the menu since the lab was started.
        let name_of_image = if keeps_image { options.remove(IMAGE) } else { None };
        options.extend(replaced);
        let (mut options, chosen) = image_menu::parse(rules, &options, context).await?;
        options.extend(name_of_image.map(|name| (IMAGE.to_owned(), name)));
        let image = if keeps_image { self.image.clone() } else { chosen.map(|chosen| chosen.image()) };
        Ok(Self { options, image, keeps_image })
    }

    /// Returns the options in which this choice differs from those of its pool.
    fn differences(&self, of_pool: &Options) -> Options {
        let own = self.options.iter().filter(|(name, value)| of_pool.get(*name) != Some(*value));
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }
}

/// The program that the pods of a child run.
pub(crate) enum ChildLaunch {
    Kernel(Launch),
    DaskPool(PoolLaunch),
}

impl ChildLaunch {
    fn outlives_lab(&self) -> bool {
        matches!(self, Self::DaskPool(launch) if launch.pool.outlives_lab)
    }
}

/// Approves a request to start a lab.
///
/// `names` are the names of the lab's objects. `so_far` is the user's present and past use.
pub(crate) async fn approve(
    rules: &SiteRules<'_>,
    names: LabNames,
    mut request: SpawnRequest,
    so_far: UserUse,
) -> Result<Approved, SpawnError> {
    request.identity.may_spawn().map_err(forbidden)?;
    let kept = KeptRequest::from_request(&request).map(Arc::new);
    blueprints::take_workload(rules, &mut request)?;
    let names = names_in_workload(rules, names, &request)?;
    let user = User::from(&request.identity);
    let context = FormContext { user: user.clone(), server: request.key.server.to_string() };
    let chosen = blueprints::choose(rules, &mut request, &user).await?;
    let (options, image) = image_menu::parse(rules, &request.options, &context).await?;
    request.options = options;
    chosen.note(&mut request.options);
    let question = AuthorizeRequest {
        action: Action::Spawn,
        user: user.clone(),
        server: request.key.server.to_string(),
        options: request.options.clone(),
        subject: Subject {
            child: None,
            use_of_user: so_far.present,
            past_days: so_far.past,
            blueprint: about_blueprint(&chosen),
            last_options: Options::new(),
        },
    };
    authorize(rules, &question).await?;
    let quotas = limits(rules, &user, &question.subject).await?;
    let (subject, image) = (question.subject, image.map(|chosen| chosen.image()));
    let place = match request.wanted.workload.clone() {
        Some(workload) => PlaceKind::InWorkload(PlaceWorkload { workload, uid: None }),
        None => PlaceKind::Configured,
    };
    let entrance = match &place {
        PlaceKind::InWorkload(_) => Entrance::Pod,
        _ => rules.config.lab.section.service.as_ref().map_or(Entrance::Pod, LabService::entrance),
    };
    Ok(Approved {
        request,
        names,
        user,
        subject,
        blueprints: chosen,
        quotas,
        image,
        keeps_image: false,
        child: None,
        place,
        entrance,
        kept,
    })
}

/// The names of a lab in a workload: in the workload's namespace, and different from those of anything else there.
fn names_in_workload(
    rules: &SiteRules<'_>,
    names: LabNames,
    request: &SpawnRequest,
) -> Result<LabNames, SpawnError> {
    let Some(Workload { namespace, .. }) = &request.wanted.workload else { return Ok(names) };
    if !rules.config.workloads.namespaces.contains(namespace) {
        return Err(SpawnError::NO_WORKLOADS);
    }
    let object = SpawnKey::from(request.key.clone()).object_prefix(names.pod.as_str());
    Ok(names.of_child(namespace.clone(), object))
}

/// Approves a request to start a child of `lab`, which is running. `names` are the names of the lab's objects. The
/// options of the lab apply to its children, too, except those that the request replaces.
pub(crate) async fn approve_child(
    rules: &SiteRules<'_>,
    names: LabNames,
    mut request: ChildRequest,
    lab: RunningLab,
    link: ServiceLink,
    so_far: UserUse,
    workers_of_others: u32,
) -> Result<Approved, SpawnError> {
    request.identity.may_spawn().map_err(forbidden)?;
    let key = request.key();
    let action = match &mut request.child {
        Child::Kernel(_) => {
            let allowed = rules.config.limits.per_user.kernels.get();
            allow_another(
                (so_far.present.kernels, allowed),
                "kernels",
                "shut one down",
                "limits.per_user.kernels",
            )?;
            Action::StartKernel
        }
        Child::DaskPool(pool) => {
            let limits = rules.config.limits.per_user;
            allow_another(
                (so_far.present.dask_pools, limits.dask_pools.get()),
                "Dask pools",
                "close one",
                "limits.per_user.dask_pools",
            )?;
            follow_rules_of_site(pool, &rules.config, &lab.place)?;
            allow_workers(pool.workers.minimum, (workers_of_others, limits.dask_workers.get()))?;
            Action::DaskPool
        }
    };
    let user = User::from(&request.identity);
    let server = request.lab.server.to_string();
    let mut options = lab.description.options.clone();
    let image = lab.description.image.clone().map(|image| (Source::Service, image));
    let chosen = blueprints::of_lab(rules, &lab.description, &mut options, &user)?;
    let context = FormContext { user: user.clone(), server: server.clone() };
    let of_lab = Choice { options, image, keeps_image: true };
    let of_child = of_lab.replace(rules, request.options, &context).await?;
    let (scheduler, groups) = parts_of_pool(rules, &request.child, &of_child, &chosen, &context).await?;
    let Choice { mut options, image, keeps_image } = of_child;
    chosen.note(&mut options);
    let subject = Subject {
        child: Some(about(&request.child, &request.name)),
        use_of_user: so_far.present,
        past_days: so_far.past,
        blueprint: about_blueprint(&chosen),
        last_options: Options::new(),
    };
    let mut question =
        AuthorizeRequest { action, user: user.clone(), server, options: options.clone(), subject };
    authorize(rules, &question).await?;
    for part in scheduler.iter().chain(groups.iter().map(|(_, group)| group)) {
        if part.options != options {
            question.options = part.options.clone();
            authorize(rules, &question).await?;
        }
    }
    let usage = Usage { labs: so_far.present.labs };
    let quotas = quotas(rules.policies.limits(&user, usage, &question.subject).await?);
    let mut names = names.of_child(lab.place.namespace.clone(), key.object_prefix(lab.place.pod.as_str()));
    if matches!(&request.child, Child::DaskPool(pool) if pool.outlives_lab) {
        // The service account of the lab is deleted with the lab.
        names.service_account = names.object.clone();
    }
    Ok(Approved {
        request: SpawnRequest {
            wanted: Wanted::default(),
            key: request.lab,
            identity: request.identity,
            options,
            env: request.env,
            token: request.token,
            requested_by: request.requested_by,
        },
        names,
        user,
        subject: question.subject,
        blueprints: chosen,
        quotas,
        image,
        keeps_image,
        child: Some(Arc::new(ApprovedChild {
            launch: link.launch(request.child),
            lab: lab.pod,
            scheduler,
            groups,
        })),
        place: lab.place.kind,
        entrance: Entrance::Pod,
        kept: None,
    })
}

/// The choices of the parts of a pool: its scheduler, if that differs, and its groups of workers.
async fn parts_of_pool(
    rules: &SiteRules<'_>,
    child: &Child,
    of_pool: &Choice,
    blueprint: &Chosen,
    context: &FormContext,
) -> Result<(Option<Choice>, Vec<(WorkerGroupName, Choice)>), SpawnError> {
    let Child::DaskPool(pool) = child else { return Ok((None, Vec::new())) };
    let part = async |what: String, options: &Options| {
        let replaced = of_pool.replace(rules, options.clone(), context).await;
        let mut choice = replaced.map_err(|error| error.about_part(&what))?;
        blueprint.note(&mut choice.options);
        Ok::<_, SpawnError>(choice)
    };
    let scheduler = if pool.scheduler_options.is_empty() {
        None
    } else {
        Some(part("the scheduler".to_owned(), &pool.scheduler_options).await?)
    };
    let mut groups = Vec::new();
    for group in &pool.groups {
        let choice = part(format!("the group `{}`", group.name), &group.options).await?;
        groups.push((group.name.clone(), choice));
    }
    Ok((scheduler, groups))
}

fn about_blueprint(chosen: &Chosen) -> Option<SubjectBlueprint> {
    chosen.resolved.as_deref().map(SubjectBlueprint::from)
}

/// Describes a child for the policies.
pub(crate) fn about(child: &Child, name: &ChildName) -> SubjectChild {
    let (name, workers) = match child {
        Child::Kernel(kernel) => (kernel.name.clone(), 0),
        Child::DaskPool(pool) => (name.to_string(), pool.workers.maximum),
    };
    SubjectChild { kind: child.kind(), name, workers }
}

/// The connection from the program in a child's pod to the service.
pub(crate) struct ServiceLink {
    /// The URL of the child in the API.
    pub(crate) url: String,
    /// A token that is valid for this child alone.
    pub(crate) token: SecretString,
}

impl ServiceLink {
    fn launch(self, child: Child) -> ChildLaunch {
        let Self { url, token } = self;
        match child {
            Child::Kernel(kernel) => {
                let (program, link) = (programs::KERNEL_LAUNCHER, programs::SERVICE_LINK);
                ChildLaunch::Kernel(Launch { kernel, url, token, program, link })
            }
            Child::DaskPool(pool) => {
                ChildLaunch::DaskPool(PoolLaunch { pool, url, token, programs: programs::DASK })
            }
        }
    }
}

impl Approved {
    /// The details of the lab that are known before the rest is decided.
    pub(crate) fn about(&self, operation: &Operation) -> LabDetails {
        let identity = &self.request.identity;
        let names = self.request.env.keys().map(ToString::to_string);
        let mut description = LabDescription {
            options: self.request.options.clone(),
            uid: identity.uid,
            gid: identity.gid,
            groups: identity.groups.clone(),
            ..LabDescription::default()
        };
        self.complete(&mut description);
        LabDetails {
            description: description.into(),
            env: names.map(|name| (name, REDACTED.to_owned())).collect::<BTreeMap<_, _>>(),
            started_at: Some(operation.started_at),
        }
    }

    /// The place that the record of the spawn names first.
    pub(crate) fn place(&self, context: &Context, key: &SpawnKey, operation: JobId) -> Place {
        let kind = match (&self.place, &self.child) {
            // The claim is the lab's alone.
            (place, Some(_)) => place.cluster().cloned().map_or(PlaceKind::Configured, PlaceKind::BesideLab),
            (PlaceKind::Configured, None) => context.first_place(key, operation),
            (place, None) => place.clone(),
        };
        Place { kind, entrance: self.entrance, ..Place::from_names(&self.names) }
    }

    /// Returns the same request for the namespace that the lab's claim has brought.
    pub(crate) fn bound(&self, place: &Place) -> Self {
        let names = LabNames { namespace: place.namespace.clone(), ..self.names.clone() };
        let entrance = if place.entrance.has_service() { self.entrance } else { Entrance::Pod };
        Self { names, place: place.kind.clone(), entrance, ..self.clone() }
    }

    /// The lab of this child, if the child ends with it.
    pub(crate) fn parent(&self) -> Option<&ParentPod> {
        let child = self.child.as_ref()?;
        (!child.launch.outlives_lab()).then_some(&child.lab)
    }

    /// Returns the same request with the choice of a part of a pool.
    pub(crate) fn part(&self, choice: &Choice) -> Self {
        let Choice { options, image, keeps_image } = choice.clone();
        let request = SpawnRequest { options, ..self.request.clone() };
        Self { request, image, keeps_image, ..self.clone() }
    }

    /// Adds the parts that only the request contains to a description: a blueprint that the site has not written, and
    /// the child, if this is one.
    pub(crate) fn complete(&self, description: &mut LabDescription) {
        description.foreign_blueprint = self.blueprints.foreign.as_deref().cloned();
        let Some(child) = self.child.as_deref() else { return };
        match &child.launch {
            ChildLaunch::Kernel(Launch { kernel, token, .. }) => {
                let launcher = digest(token);
                description.kernel = Some(KernelDescription { name: kernel.name.clone(), launcher });
            }
            ChildLaunch::DaskPool(PoolLaunch { pool, token, .. }) => {
                let choices = child.groups.iter().map(|(_, choice)| choice);
                let groups = pool.groups.iter().zip(choices).map(|(group, choice)| GroupDescription {
                    name: group.name.clone(),
                    workers: group.workers,
                    options: choice.differences(&self.request.options),
                    limits: None,
                    worker: None,
                });
                description.pool = Some(PoolDescription {
                    workers: pool.workers,
                    groups: groups.collect(),
                    scheduler: None,
                    idle_timeout: pool.idle_timeout,
                    outlives_lab: pool.outlives_lab,
                    certificate: Digest::sha256(pool.certificate.as_bytes()).to_string(),
                    keeper: digest(token),
                    worker: None,
                });
            }
        }
    }

    /// The name of the caller who asked for the lab.
    pub(crate) fn requested_by(&self) -> &str {
        self.request.requested_by.as_str()
    }
}

/// The digest of a token, as it is recorded.
pub(crate) fn digest(token: &SecretString) -> String {
    Digest::sha256(token.expose().as_bytes()).to_string()
}

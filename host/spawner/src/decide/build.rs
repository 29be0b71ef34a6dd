//! The steps of a decision: names the lab, asks the policies, merges their answers, and builds the objects.

use std::sync::Arc;

use jiff::SignedDuration;
use wasmspawner_core::config::lab::LabCertificate;
use wasmspawner_core::config::{EnvironmentChoice, NamespaceReclaim};
use wasmspawner_core::custom_resource::environment::NamespaceFate;
use wasmspawner_core::lifecycle::{Blame, Failure, LabTimeLimits, Operation, TimeLimits};
use wasmspawner_core::manifest::{self, IssuedCertificate, LabObject, PartConflict, PoolObjects, PoolParts};
use wasmspawner_core::names::{KeptNames, LabNames, LabelValue};
use wasmspawner_core::policy::compose::{
    self, ImageInputs, PodOwner, SpawnInputs, SpawnRejected, ValidatedSpawn, compose,
};
use wasmspawner_core::policy::{ChainAnswer, LabRequest};
use wasmspawner_core::record::LabDescription;
use wasmspawner_core::record::volumes::VolumeRecord;

use super::approve::{Approved, ApprovedChild, ChildLaunch, Choice};
use super::details::{details, limits_of};
use super::from_cluster::FromCluster;
use super::pod_note::PodNote;
use super::workload_requests::{self, AdmittedWorkload};
use super::{Decided, Destination};
use crate::context::lab_routes::lab_routes;
use crate::context::reclaim_of;
use crate::context::site_rules::SiteRules;
use crate::context::volumes::OwnClaim;
use crate::errors::SpawnError;
use wasmspawner_policies::Patience;

/// Merges the answers of the policies with the request and the configuration, and checks the result. Returns the facts
/// that are still needed, too.
pub(super) fn compose_answers(
    rules: &SiteRules<'_>,
    approved: &Approved,
    operation: &Operation,
    spawn: &str,
    names: LabNames,
    answers: Vec<ChainAnswer>,
    mut cluster: FromCluster,
) -> Result<(ValidatedSpawn, FromCluster), Failure> {
    let inputs = SpawnInputs {
        request: approved.request.clone(),
        job_id: operation.job_id,
        spawn: LabelValue::parse(spawn).map_err(|_| unlabelled())?,
        answers,
        names,
        quotas: approved.quotas.clone(),
        lab: &rules.config.lab,
        site_secrets: std::mem::take(&mut cluster.site_secrets),
        provisioned: cluster.provisioned,
        images: ImageInputs {
            chosen: approved.image.clone(),
            inventory: rules.policies.inventory().registries(),
            unpinned: rules.config.images.unpinned,
        },
        pod: match (&approved.child, &cluster.workload) {
            (Some(_), _) => PodOwner::Child,
            (None, Some(_)) => PodOwner::Workload,
            (None, None) => PodOwner::Lab,
        },
        port: cluster.workload.as_ref().map(|workload| workload.port),
    };
    let mut spawn = compose(inputs).map_err(rejected)?;
    if let (true, Some((_, image))) = (approved.keeps_image, &approved.image) {
        spawn.image.clone_from(image);
    }
    for conflict in &spawn.provenance.conflicts {
        tracing::warn!(%conflict, "two policies disagree");
    }
    Ok((spawn, cluster))
}

/// Builds a lab with a pod of its own, or says which environment it needs first.
pub(super) fn own_pod(
    rules: &SiteRules<'_>,
    approved: &Approved,
    mut spawn: ValidatedSpawn,
    mut parts: PoolParts,
    cluster: &FromCluster,
    operation: &Operation,
) -> Result<Decided, Failure> {
    let volumes = VolumeRecord::from_spawn(&spawn);
    refuse_claim_of_another(&cluster.own_claim, volumes.as_ref())?;
    let destination = match environment(rules, approved, &spawn)? {
        Some(choice) => Destination::Environment(choice),
        None => Destination::OwnPod { remembered: volumes.filter(|_| outlives_lab(approved)) },
    };
    if let Some(fate) = approved.place.fate() {
        spawn.namespaces = reclaim_of(fate);
        parts.each(|part| part.namespaces = reclaim_of(fate));
    }
    if approved.entrance.certificate().is_some() {
        spawn.serve_tls();
    }
    let routes = routes(rules, approved, &spawn, cluster.certificate.as_ref());
    let mut decided = build(rules, approved, spawn, &parts, operation, destination)?;
    decided.objects.routes = routes;
    if approved.place.claim().is_some() {
        // The namespace belongs to the target.
        decided.objects.namespace = None;
    }
    Ok(decided)
}

/// True if the claims of the lab's volumes outlive it. A child may use fewer than its lab.
fn outlives_lab(approved: &Approved) -> bool {
    approved.child.is_none() && matches!(approved.place.fate(), None | Some(NamespaceFate::Shared))
}

/// Builds a lab that is put into a workload. It has no volume claims, and no environment.
pub(super) fn in_workload(
    rules: &SiteRules<'_>,
    approved: &Approved,
    mut spawn: ValidatedSpawn,
    workload: &AdmittedWorkload,
    operation: &Operation,
) -> Result<Decided, Failure> {
    spawn.namespaces = workload_requests::NAMESPACE;
    let (objects, workload) = workload_requests::build(&spawn, workload).map_err(SpawnError::into_failure)?;
    let parts = PoolParts::default();
    let decided = build(rules, approved, spawn, &parts, operation, Destination::Workload(workload))?;
    Ok(Decided { objects, ..decided })
}

/// The environment that a lab still has to get.
fn environment(
    rules: &SiteRules<'_>,
    approved: &Approved,
    spawn: &ValidatedSpawn,
) -> Result<Option<EnvironmentChoice>, Failure> {
    if approved.place.claim().is_some() || approved.child.is_some() {
        return Ok(None);
    }
    // The class was checked before the answers were merged.
    let asked = spawn.environment_class.as_deref().and_then(|asked| EnvironmentChoice::parse(asked).ok());
    match (&rules.config.environments, asked) {
        (Some(site), asked) => Ok(asked.or_else(|| site.default_class.clone())),
        (None, None) => Ok(None),
        (None, Some(asked)) => {
            let message = format!(
                "A policy of this site chooses the environment class `{}`, and the site has no environments; its \
                 administrators add the section `environments` to the configuration",
                String::from(asked)
            );
            Err(Failure::new("NoEnvironments", message, Blame::Policy))
        }
    }
}

/// Returns the names of the lab, with the fields that its templates may contain. If the lab has a claim that an older
/// KubeSpawner made, it keeps that claim.
pub(super) fn names(
    rules: &SiteRules<'_>,
    approved: &Approved,
    own_claim: &OwnClaim,
) -> Result<LabNames, Failure> {
    let names = if let OwnClaim::Legacy(pvc) = own_claim {
        let kept = KeptNames { namespace: Some(approved.names.namespace.clone()), pvc: Some(pvc.clone()) };
        let names = rules.names(&kept, &approved.request.key);
        names.map_err(|error| SpawnError::from(error).into_failure())?
    } else {
        approved.names.clone()
    };
    let user = &approved.request.identity;
    let home = rules.config.lab.home(&names.fields, user);
    let fields = names.fields.with_user(user.uid, user.gid, &user.supplemental_gids(), home);
    Ok(LabNames { fields, ..names })
}

/// Refuses a lab whose own claim belongs to another user: two usernames that give the same claim name must not share
/// files.
fn refuse_claim_of_another(own_claim: &OwnClaim, volumes: Option<&VolumeRecord>) -> Result<(), Failure> {
    let (OwnClaim::OfAnother(owner), Some(volumes)) = (own_claim, volumes) else { return Ok(()) };
    if volumes.claims.iter().all(|claim| claim.name != volumes.pvc) {
        return Ok(());
    }
    let VolumeRecord { namespace, pvc, .. } = volumes;
    tracing::error!(%namespace, %pvc, owner, user = %volumes.key.user, "the lab's own claim says that it is another user's: correct its annotation, or names.pvc");
    let message = "The volume that would be this lab's belongs to another user; the site's administrators find out \
                   more in the service's log";
    Err(Failure::service("VolumeOfAnotherUser", message))
}

fn build(
    rules: &SiteRules<'_>,
    approved: &Approved,
    spawn: ValidatedSpawn,
    parts: &PoolParts,
    operation: &Operation,
    destination: Destination,
) -> Result<Decided, Failure> {
    let mut about = details(rules, &spawn, operation);
    let terms = LabTimeLimits {
        spawn_limit: spawn.time_limits.spawn_seconds.map(|seconds| SignedDuration::from_secs(seconds.into())),
        delete_limit: spawn
            .time_limits
            .delete_seconds
            .map(|seconds| SignedDuration::from_secs(seconds.into())),
    };
    let description = Arc::make_mut(&mut about.description);
    approved.complete(description);
    let mut objects = match approved.child.as_deref() {
        None => manifest::build(&spawn),
        Some(ApprovedChild { launch: ChildLaunch::Kernel(launch), lab, .. }) => {
            manifest::build_kernel(&spawn, launch, lab)
        }
        Some(ApprovedChild { launch: ChildLaunch::DaskPool(launch), lab, .. }) => {
            let built = manifest::build_dask_pool(&spawn, parts, launch, lab);
            let PoolObjects { objects, worker, groups } = built.map_err(|conflict| conflicting(&conflict))?;
            if let Some(pool) = &mut description.pool {
                pool.worker = worker.and_then(|pod| serde_json::to_value(pod).ok());
                pool.scheduler = parts.scheduler.as_ref().map(limits_of);
                for ((described, built), (_, spawn)) in pool.groups.iter_mut().zip(groups).zip(&parts.groups)
                {
                    described.worker = serde_json::to_value(built.pod).ok();
                    described.limits = Some(limits_of(spawn));
                }
            }
            objects
        }
    };
    let shown = objects.env.data.clone().unwrap_or_default();
    let hidden = about.env.iter().filter(|(name, _)| !shown.contains_key(*name));
    Arc::make_mut(&mut about.description).hidden_env =
        hidden.map(|(name, value)| (name.clone(), value.clone())).collect();
    let quota = (spawn.namespaces == NamespaceReclaim::Single).then(|| spawn.quota.clone());
    let usual = rules.config.limits.time_limits();
    let limits = TimeLimits {
        spawn: terms.spawn_limit.unwrap_or(usual.spawn),
        delete: terms.delete_limit.unwrap_or(usual.delete),
    };
    PodNote::new(LabDescription::clone(&about.description), limits).attach(&mut objects.pod);
    Arc::make_mut(&mut about.description).decided_by = spawn.provenance.by_source();
    Ok(Decided { about: Arc::new(about), objects, provenance: spawn.provenance, terms, quota, destination })
}

fn conflicting(conflict: &PartConflict) -> Failure {
    let message = format!("The pool cannot be built: {conflict}. The site's policies decide about both");
    Failure::new("PolicyAnswerRefused", message, Blame::Policy)
}

/// Asks the policies about the parts of a pool whose options differ from those of the pool.
pub(super) async fn parts_of_pool(
    rules: &SiteRules<'_>,
    approved: &Approved,
    (operation, spawn): (&Operation, &str),
    names: &LabNames,
    cluster: &FromCluster,
    patience: &Patience,
) -> Result<PoolParts, Failure> {
    let Some(child) = approved.child.as_deref() else { return Ok(PoolParts::default()) };
    let decide = async |choice: &Choice| {
        let part = approved.part(choice);
        let answers = customize(rules, &part, names, patience).await?;
        let facts = cluster.of_part();
        let composed = compose_answers(rules, &part, operation, spawn, names.clone(), answers, facts)?;
        Ok::<_, Failure>(composed.0)
    };
    let scheduler = match &child.scheduler {
        Some(choice) => Some(decide(choice).await?),
        None => None,
    };
    let mut groups = Vec::new();
    for (name, choice) in &child.groups {
        groups.push((name.clone(), decide(choice).await?));
    }
    Ok(PoolParts { scheduler, groups })
}

/// Builds the objects that lead requests to a lab: its Service with a certificate, or the routes of another cluster. A
/// child has neither.
fn routes(
    rules: &SiteRules<'_>,
    approved: &Approved,
    spawn: &ValidatedSpawn,
    issued: Option<&IssuedCertificate>,
) -> Vec<LabObject> {
    if approved.child.is_some() {
        return Vec::new();
    }
    if approved.entrance.has_service() {
        let service = LabObject::Service(Box::new(manifest::headless_service(spawn)));
        return [Some(service), certificate(rules, approved, spawn, issued)].into_iter().flatten().collect();
    }
    let routes = lab_routes(&rules.config, approved.place.cluster());
    let routes = routes.and_then(|routes| manifest::build_routes(spawn, routes)).map(|(service, route)| {
        vec![LabObject::Service(Box::new(service)), LabObject::Route(Box::new(route))]
    });
    routes.unwrap_or_default()
}

/// The object from which the lab gets its certificate.
fn certificate(
    rules: &SiteRules<'_>,
    approved: &Approved,
    spawn: &ValidatedSpawn,
    issued: Option<&IssuedCertificate>,
) -> Option<LabObject> {
    let service =
        rules.config.lab.section.service.as_ref().filter(|_| approved.entrance.certificate().is_some())?;
    match service.certificate.as_ref()? {
        LabCertificate::Authority(_) => Some(manifest::certificate_secret(spawn, issued?).into()),
        LabCertificate::CertManager(template) => {
            let wanted = manifest::requested_certificate(spawn, template, service.lab_url.as_deref());
            Some(LabObject::Certificate(Box::new(wanted)))
        }
    }
}

pub(super) async fn customize(
    rules: &SiteRules<'_>,
    approved: &Approved,
    names: &LabNames,
    patience: &Patience,
) -> Result<Vec<ChainAnswer>, Failure> {
    let question = LabRequest {
        user: approved.user.clone(),
        server: approved.request.key.server.to_string(),
        options: approved.request.options.clone(),
        fields: Some(Arc::new(names.fields.clone())),
        subject: approved.subject.clone(),
    };
    let answers = patience.ask(|| rules.policies.customize(&question)).await;
    let of_policies = answers.map_err(|error| SpawnError::from(error).into_failure())?;
    Ok(approved
        .blueprints
        .resolved
        .as_deref()
        .map(ChainAnswer::of_blueprint)
        .into_iter()
        .chain(of_policies)
        .collect())
}

/// The uids of Kubernetes are UUIDs, but another API server's might not be valid as a label.
fn unlabelled() -> Failure {
    Failure::service("InternalError", "The cluster's uid of the lab's record cannot be used as a label")
}

fn rejected(rejected: SpawnRejected) -> Failure {
    tracing::warn!(blame = ?rejected.blame, error = %rejected, "the lab cannot be built");
    match rejected.blame {
        compose::RejectionBlame::Policy(policy) => {
            let message = format!(
                "The policy `{policy}` of this site asks for something that it may not have: {}",
                rejected.message
            );
            Failure::new("PolicyAnswerRefused", message, Blame::Policy)
        }
        compose::RejectionBlame::Request => Failure::new("InvalidRequest", rejected.message, Blame::User),
        compose::RejectionBlame::Operator => Failure::service("InvalidConfiguration", rejected.message),
    }
}

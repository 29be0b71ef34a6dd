//! Approves a request: whether it is valid, allowed and within the limits. This is the part of a decision that the caller
//! waits for.

use std::collections::BTreeMap;

use wasmspawner_core::digest::Digest;
use wasmspawner_core::form::FormContext;
use wasmspawner_core::images::IMAGE;
use wasmspawner_core::kernel::Launch;
use wasmspawner_core::lifecycle::Operation;
use wasmspawner_core::manifest::ParentPod;
use wasmspawner_core::names::LabNames;
use wasmspawner_core::policy::compose::{REDACTED, Source, all_allow};
use wasmspawner_core::policy::{Action, AuthorizeRequest, Image, User, Verdict};
use wasmspawner_core::quota::{Quota, Usage};
use wasmspawner_core::record::{KernelDescription, LabDescription};
use wasmspawner_core::spawn::{KernelRequest, SpawnRequest};
use wasmspawner_core::spawn_key::SpawnKey;

use super::errors::SpawnError;
use super::image_menu;
use super::rules::SiteRules;
use super::running_lab::RunningLab;
use super::snapshot::LabDetails;

/// A request that the policies have approved. Its options are parsed and its names are known.
pub(super) struct Approved {
    pub(super) request: SpawnRequest,
    pub(super) names: LabNames,
    pub(super) user: User,
    pub(super) quotas: Vec<(Source, Quota)>,
    /// The image that was chosen, and by whom; that of a kernel's lab, unless the request chooses another.
    pub(super) image: Option<(Source, Image)>,
    pub(super) kernel: Option<Box<ApprovedKernel>>,
}

/// What makes an approved spawn that of a kernel.
pub(super) struct ApprovedKernel {
    pub(super) launch: Launch,
    pub(super) lab: ParentPod,
    /// True if the kernel has the image of its lab, whatever policies say about that image today.
    pub(super) keeps_image: bool,
}

/// Approves a request to start a lab.
///
/// `names` are the names of the lab's objects; `labs` is the number of labs that the user has already.
pub(super) async fn approve(
    rules: &SiteRules<'_>,
    names: LabNames,
    mut request: SpawnRequest,
    labs: u32,
) -> Result<Approved, SpawnError> {
    request.identity.may_spawn().map_err(denied)?;
    let user = User::from(&request.identity);
    let context = FormContext { user: user.clone(), server: request.key.server.to_string() };
    let (options, image) = image_menu::parse(rules, &request.options, &context).await?;
    request.options = options;
    let question = AuthorizeRequest {
        action: Action::Spawn,
        user: user.clone(),
        server: request.key.server.to_string(),
        options: request.options.clone(),
    };
    authorize(rules, &question).await?;
    let quotas = limits(rules, &user, Usage { labs }).await?;
    Ok(Approved { request, names, user, quotas, image: image.map(|chosen| chosen.image()), kernel: None })
}

/// The same for a kernel of `lab`, which runs. `names` are the names of the lab's objects; `kernels` is the number of
/// kernels that the user has already. The options of the lab hold for its kernels too, except those that the request
/// replaces.
pub(super) async fn approve_kernel(
    rules: &SiteRules<'_>,
    names: LabNames,
    request: KernelRequest,
    lab: RunningLab,
    launch: Launch,
    kernels: u32,
) -> Result<Approved, SpawnError> {
    request.identity.may_spawn().map_err(denied)?;
    let allowed = rules.config.limits.per_user.kernels.get();
    if kernels >= allowed {
        let message =
            format!("You may have {allowed} kernels at a time and have {kernels}; shut one down first");
        return Err(SpawnError::Denied { message });
    }
    let user = User::from(&request.identity);
    let server = request.lab.server.to_string();
    let mut options = lab.description.options.clone();
    let mut image = lab.description.image.clone().map(|image| (Source::Service, image));
    let keeps_image = !request.options.contains_key(IMAGE);
    if !request.options.is_empty() {
        // The lab's image may have left the menu since the lab was started.
        let name_of_image = options.remove(IMAGE).filter(|_| keeps_image);
        options.extend(request.options);
        let context = FormContext { user: user.clone(), server: server.clone() };
        let (parsed, chosen) = image_menu::parse(rules, &options, &context).await?;
        options = parsed;
        if keeps_image {
            options.extend(name_of_image.map(|name| (IMAGE.to_owned(), name)));
        } else {
            image = chosen.map(|chosen| chosen.image());
        }
    }
    let question = AuthorizeRequest {
        action: Action::StartKernel,
        user: user.clone(),
        server,
        options: options.clone(),
    };
    authorize(rules, &question).await?;
    let answers = rules.policies.limits(&user, Usage::default()).await?;
    let quotas =
        answers.into_iter().map(|answer| (Source::Policy(answer.policy.to_string()), answer.value)).collect();
    let key = SpawnKey::kernel(request.lab.clone(), request.name);
    let names = names.of_child(lab.place.namespace.clone(), key.object_prefix(lab.place.pod.as_str()));
    Ok(Approved {
        request: SpawnRequest {
            key: request.lab,
            identity: request.identity,
            options,
            env: BTreeMap::new(),
            token: request.token,
            requested_by: request.requested_by,
        },
        names,
        user,
        quotas,
        image,
        kernel: Some(Box::new(ApprovedKernel { launch, lab: lab.pod, keeps_image })),
    })
}

pub(super) async fn authorize(rules: &SiteRules<'_>, question: &AuthorizeRequest) -> Result<(), SpawnError> {
    let answers = rules.policies.authorize(question).await?;
    match all_allow(answers.into_iter().map(|answer| answer.value)) {
        Verdict::Allow => Ok(()),
        Verdict::Deny(message) => Err(SpawnError::Denied { message }),
    }
}

async fn limits(
    rules: &SiteRules<'_>,
    user: &User,
    usage: Usage,
) -> Result<Vec<(Source, Quota)>, SpawnError> {
    let answers = rules.policies.limits(user, usage).await?;
    let of_site = Quota { labs: Some(rules.config.limits.per_user.labs.get()), ..Quota::default() };
    let all = answers.iter().map(|answer| answer.value.clone()).fold(of_site, Quota::and);
    all.allows_another_lab(usage).map_err(denied)?;
    Ok(answers.into_iter().map(|answer| (Source::Policy(answer.policy.to_string()), answer.value)).collect())
}

fn denied(refusal: impl std::error::Error) -> SpawnError {
    SpawnError::Denied { message: refusal.to_string() }
}

impl Approved {
    /// The details of the lab that are known before the rest is decided.
    pub(super) fn about(&self, operation: &Operation) -> LabDetails {
        let identity = &self.request.identity;
        let names = self.request.env.keys().map(ToString::to_string);
        LabDetails {
            description: LabDescription {
                options: self.request.options.clone(),
                uid: identity.uid,
                gid: identity.gid,
                groups: identity.groups.clone(),
                kernel: self.kernel_description(),
                ..LabDescription::default()
            }
            .into(),
            env: names.map(|name| (name, REDACTED.to_owned())).collect::<BTreeMap<_, _>>(),
            started_at: Some(operation.started_at),
        }
    }

    /// The lab of a kernel.
    pub(super) fn parent(&self) -> Option<&ParentPod> {
        self.kernel.as_ref().map(|kernel| &kernel.lab)
    }

    /// True for a kernel that has the image of its lab, whatever policies say about that image today.
    pub(super) fn keeps_image(&self) -> bool {
        self.kernel.as_ref().is_some_and(|kernel| kernel.keeps_image)
    }

    pub(super) fn kernel_description(&self) -> Option<KernelDescription> {
        let Launch { kernel, token, .. } = &self.kernel.as_ref()?.launch;
        let launcher = Digest::of(token.expose().as_bytes()).to_string();
        Some(KernelDescription { name: kernel.name.clone(), launcher })
    }

    /// The name of the caller who asked for the lab.
    pub(super) fn requested_by(&self) -> &str {
        self.request.requested_by.as_str()
    }
}

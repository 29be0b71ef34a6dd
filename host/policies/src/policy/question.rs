//! A call of a hook with its arguments, kept to make the same call to another policy.

use serde_json::{Value, json};
use wasmspawner_core::names::spawn_key::ChildKind;
use wasmspawner_core::policy::form::FormContext;
use wasmspawner_core::policy::{AuthorizeRequest, InjectRequest, LabRequest, Options, Subject, User};
use wasmspawner_core::users::quota::Usage;

use super::Policy;
use crate::engine::Engine;
use crate::errors::CallError;
use crate::names::hook::Hook;

/// A hook with the arguments of a call.
pub(crate) enum Question {
    RenderForm(FormContext),
    ParseForm(Options, FormContext),
    Limits(User, Usage, Subject),
    Authorize(AuthorizeRequest),
    Inject(InjectRequest, Subject),
    BuildPod(LabRequest),
    LabServer(LabRequest),
    ImageMenu(FormContext),
}

impl Question {
    pub(crate) fn hook(&self) -> Hook {
        match self {
            Self::RenderForm(_) => Hook::RenderForm,
            Self::ParseForm(..) => Hook::ParseForm,
            Self::Limits(..) => Hook::Quota,
            Self::Authorize(_) => Hook::Authorize,
            Self::Inject(..) => Hook::Inject,
            Self::BuildPod(_) => Hook::BuildPod,
            Self::LabServer(_) => Hook::LabServer,
            Self::ImageMenu(_) => Hook::ImageMenu,
        }
    }

    /// Makes the call to a policy. Returns `None` if the policy does not have the hook.
    pub(crate) async fn ask(&self, policy: &Policy, engine: &Engine) -> Option<Result<Value, CallError>> {
        Some(match self {
            Self::RenderForm(context) => policy.render_form(engine, context).await?.map(|form| json!(form)),
            Self::ParseForm(submission, context) => {
                policy.parse_form(engine, submission, context).await?.map(|options| json!(options))
            }
            Self::Limits(user, usage, subject) => {
                policy.limits(engine, user, *usage, subject).await?.map(|quota| json!(quota))
            }
            Self::Authorize(request) => {
                policy.authorize(engine, request).await?.map(|verdict| json!(verdict))
            }
            Self::Inject(request, subject) => {
                policy.inject(engine, request, subject).await?.map(|verdict| json!(verdict))
            }
            Self::BuildPod(request) => policy.customize(engine, request).await?.map(|wanted| json!(wanted)),
            Self::LabServer(request) => policy.lab_server(engine, request).await?.map(|server| json!(server)),
            Self::ImageMenu(context) => policy.image_menu(engine, context).await?.map(|menu| json!(menu)),
        })
    }

    /// Returns the call as input of `wasmspawner policy run`. Leaves out data that identify a person, except the
    /// username.
    pub(crate) fn input(&self) -> Value {
        match self {
            Self::RenderForm(context) | Self::ImageMenu(context) => of_user(&context.user, &context.server),
            Self::ParseForm(submission, context) => {
                with_options(of_user(&context.user, &context.server), submission)
            }
            Self::Limits(user, _, subject) => about(of_user(user, ""), subject),
            Self::Authorize(request) => {
                let mut input = with_options(of_user(&request.user, &request.server), &request.options);
                input["action"] = json!(request.action);
                about(input, &request.subject)
            }
            Self::Inject(request, subject) => {
                let mut input = with_options(of_user(&request.user, &request.server), &request.options);
                let seen = &request.workload;
                input["workload"] = json!({
                    "workload": seen.workload.to_string(), "containers": seen.containers, "volumes": seen.volumes,
                });
                about(input, subject)
            }
            Self::BuildPod(request) | Self::LabServer(request) => {
                let input = with_options(of_user(&request.user, &request.server), &request.options);
                about(input, &request.subject)
            }
        }
    }
}

fn of_user(user: &User, server: &str) -> Value {
    let groups: Vec<Value> =
        user.groups.iter().map(|group| json!({ "name": group.name, "gid": group.gid })).collect();
    let user = json!({ "name": user.name, "uid": user.uid, "gid": user.gid, "groups": groups });
    json!({ "user": user, "server": server })
}

fn with_options(mut input: Value, options: &Options) -> Value {
    input["options"] = json!(options);
    input
}

fn about(mut input: Value, subject: &Subject) -> Value {
    input["use"] = json!(subject.use_of_user);
    if let Some(child) = &subject.child {
        let kind = match child.kind {
            ChildKind::Kernel => "kernel",
            ChildKind::DaskPool => "dask-pool",
        };
        input["child"] = json!({ "kind": kind, "name": child.name, "workers": child.workers });
    }
    input
}

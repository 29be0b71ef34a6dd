//! Calling a hook by its name.

use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wasmspawner_core::policy::form::FormContext;
use wasmspawner_core::policy::{AuthorizeRequest, InjectVerdict, LabRequest};

use super::case::Case;
use wasmspawner_policies::{CallError, Policies, answer_json};

/// A hook, as the WIT package names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub(super) enum HookName {
    /// The spawn form
    #[value(name = "form.render")]
    #[serde(rename = "form.render")]
    FormRender,
    /// The options of a submission
    #[value(name = "form.parse")]
    #[serde(rename = "form.parse")]
    FormParse,
    /// The limits of a user
    #[value(name = "quota.limits")]
    #[serde(rename = "quota.limits")]
    QuotaLimits,
    /// Whether an action is allowed
    #[value(name = "authorize.decide")]
    #[serde(rename = "authorize.decide")]
    AuthorizeDecide,
    /// Whether a lab may be put into a workload, and what it sees
    #[value(name = "inject.decide")]
    #[serde(rename = "inject.decide")]
    InjectDecide,
    /// What the policy does when something happens: its lines in the log
    #[value(name = "events.on-event")]
    #[serde(rename = "events.on-event")]
    EventsOnEvent,
    /// The settings of the lab's pod
    #[value(name = "build-pod.customize")]
    #[serde(rename = "build-pod.customize")]
    BuildPodCustomize,
    /// How the lab's program is reached
    #[value(name = "lab-server.decide")]
    #[serde(rename = "lab-server.decide")]
    LabServerDecide,
    /// The text files of the lab
    #[value(name = "lab-files.decide")]
    #[serde(rename = "lab-files.decide")]
    LabFilesDecide,
    /// The menu of images
    #[value(name = "images.menu")]
    #[serde(rename = "images.menu")]
    ImagesMenu,
    /// The images that nodes are to have
    #[value(name = "images.prepull")]
    #[serde(rename = "images.prepull")]
    ImagesPrepull,
}

impl HookName {
    /// Returns the interface that has the hook.
    pub(super) fn interface(self) -> &'static str {
        match self {
            Self::FormRender | Self::FormParse => "form",
            Self::QuotaLimits => "quota",
            Self::AuthorizeDecide => "authorize",
            Self::InjectDecide => "inject",
            Self::EventsOnEvent => "events",
            Self::BuildPodCustomize => "build-pod",
            Self::LabServerDecide => "lab-server",
            Self::LabFilesDecide => "lab-files",
            Self::ImagesMenu | Self::ImagesPrepull => "images",
        }
    }

    /// Returns the reason why there is no answer.
    pub(super) fn missing(self, policies: &Policies) -> String {
        let loaded = policies.loaded();
        let hooks: Vec<_> = loaded.iter().flat_map(|policy| policy.hooks.iter().copied()).collect();
        if hooks.contains(&self.interface()) {
            return "the policy gives no answer; `inject.decide` needs a `workload` in the input".to_owned();
        }
        format!("the policy does not export `{}`; it exports {}", self.interface(), hooks.join(", "))
    }

    /// Calls the hook and returns the answer in the form of the service's own types, or `None` if the policy does not
    /// have the hook.
    pub(super) async fn ask(self, policies: &Policies, case: &Case) -> Result<Option<Value>, CallError> {
        let context = FormContext { user: case.user(), server: case.server.clone() };
        let lab = || LabRequest {
            user: case.user(),
            server: case.server.clone(),
            options: case.options.clone(),
            fields: case.fields(),
            subject: case.subject(),
        };
        let has = policies.loaded().iter().any(|policy| policy.hooks.contains(&self.interface()));
        if !has {
            return Ok(None);
        }
        let answer = match self {
            Self::FormRender => {
                let answer = policies.render_form_again(&context, &case.last_options).await?;
                answer.map(|answer| json!(answer.value))
            }
            Self::FormParse => {
                policies.parse_submission(&case.options, &context).await?.map(|answer| json!(answer.value))
            }
            Self::QuotaLimits => {
                let limits = policies.limits(&case.user(), case.usage(), &case.subject()).await?;
                limits.into_iter().next().map(|answer| json!(answer.value))
            }
            Self::AuthorizeDecide => {
                let request = AuthorizeRequest {
                    action: case.action,
                    user: case.user(),
                    server: case.server.clone(),
                    options: case.options.clone(),
                    subject: case.subject(),
                };
                policies.authorize(&request).await?.into_iter().next().map(|answer| json!(answer.value))
            }
            Self::InjectDecide => {
                let Some(request) = case.inject_request() else { return Ok(None) };
                let answers = policies.inject(&request, &case.subject()).await?;
                answers.into_iter().next().map(|answer| match answer.value {
                    InjectVerdict::Allow(access) => json!({ "allow": true, "access": access }),
                    InjectVerdict::Deny(denial) => json!({ "deny": denial }),
                })
            }
            Self::EventsOnEvent => {
                policies.on_event(&case.event()).await?;
                Some(Value::Null)
            }
            Self::BuildPodCustomize => policies.build_pod(&lab()).await?.map(|answer| json!(answer)),
            Self::LabServerDecide => policies.lab_server(&lab()).await?.map(|answer| json!(answer)),
            Self::LabFilesDecide => policies.lab_files(&lab()).await?.map(|answer| json!(answer)),
            Self::ImagesMenu => policies.image_menu(&context).await?.map(|answer| json!(answer.value)),
            Self::ImagesPrepull => Some(json!(policies.prepull().await?)),
        };
        Ok(answer)
    }
}

/// Returns the answer, or the error, as JSON.
pub(super) fn outcome(answer: Result<Option<Value>, CallError>) -> Value {
    match answer {
        Ok(answer) => answer_json(Ok(answer.unwrap_or_default())),
        Err(error) => answer_json(Err(&error)),
    }
}

/// True if the outcome is an error.
pub(super) fn is_error(outcome: &Value) -> bool {
    outcome.get("error").is_some_and(Value::is_object)
}

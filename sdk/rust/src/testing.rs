//! Runs the hooks of a policy natively, in tests.

use crate::bindings::types::{Error, FieldError, User, Value};
use crate::form::{Field, FormContext};
use crate::hooks;
use crate::lab_stand_in;
use crate::options::Options;
use crate::{Action, AuthorizeRequest, Verdict, pod, quota};

/// A policy with a configuration.
pub struct TestKit<P> {
    policy: P,
    /// What the policy finds suspicious in its configuration.
    pub warnings: Vec<String>,
}

impl<P: hooks::Policy> TestKit<P> {
    /// The policy, configured.
    ///
    /// # Errors
    /// Every problem of the configuration.
    pub fn new(config: &serde_json::Value) -> Result<Self, Vec<FieldError>> {
        let (policy, warnings) = crate::config::check(&config.to_string(), P::from_config)?;
        Ok(Self { policy, warnings })
    }

    /// The fields `user` sees.
    ///
    /// # Errors
    /// The hook's.
    pub fn fields(&self, user: &User) -> Result<Vec<Field>, Error>
    where
        P: hooks::Form,
    {
        self.policy.fields(&FormContext { user: user.clone(), server: String::new() })
    }

    /// The options a submission of `user` becomes.
    ///
    /// # Errors
    /// The hook's.
    pub fn parse(&self, user: &User, submission: &serde_json::Value) -> Result<Options, Vec<FieldError>>
    where
        P: hooks::Form,
    {
        let context = FormContext { user: user.clone(), server: String::new() };
        self.policy.parse(&options(submission), &context)
    }

    /// The limits of `user`.
    ///
    /// # Errors
    /// The hook's.
    pub fn limits(&self, user: &User) -> Result<quota::Quota, Error>
    where
        P: hooks::Quota,
    {
        self.policy.limits(user, &quota::Usage { labs: 0 })
    }

    /// Whether `user` may start a lab.
    ///
    /// # Errors
    /// The hook's.
    pub fn may_spawn(&self, user: &User) -> Result<Verdict, Error>
    where
        P: hooks::Authorize,
    {
        let request = AuthorizeRequest {
            action: Action::Spawn,
            user: user.clone(),
            server: String::new(),
            options: Vec::new(),
        };
        self.policy.decide(&request)
    }

    /// What the policy says about the pod of `user`'s lab with these options. Templates are filled in with the names
    /// as they are, not their slugs: `{username}` is the user's name, `{pvc_name}` is `claim-` and that name, `{pod_name}`
    /// `nb-`, `{namespace}` `ns-`. Formats (`{username:.8}`) are the service's; here they are refused.
    ///
    /// # Errors
    /// The hook's.
    pub fn customize(&self, user: &User, with: &serde_json::Value) -> Result<pod::Customization, Error>
    where
        P: hooks::BuildPod,
    {
        self.customize_with(user, &options(with))
    }

    /// The same for options that [`TestKit::parse`] gave.
    ///
    /// # Errors
    /// The hook's.
    pub fn customize_with(&self, user: &User, with: &Options) -> Result<pod::Customization, Error>
    where
        P: hooks::BuildPod,
    {
        lab_stand_in::of(user, || self.policy.customize(user, "", with))
    }
}

/// Options out of a JSON object of scalars; anything else is left out.
pub fn options(json: &serde_json::Value) -> Options {
    let mut options = Options::default();
    for (name, value) in json.as_object().into_iter().flatten() {
        let value = match value {
            serde_json::Value::Bool(value) => Value::Boolean(*value),
            serde_json::Value::String(value) => Value::Text(value.clone()),
            serde_json::Value::Number(value) => match (value.as_i64(), value.as_f64()) {
                (Some(whole), _) => Value::Integer(whole),
                (None, Some(number)) => Value::Number(number),
                (None, None) => continue,
            },
            _ => continue,
        };
        options.insert(name, value);
    }
    options
}

//! Runs a policy's hooks natively, for tests.

use crate::bindings::types::{Error, FieldError, User, Value};
use crate::event::Event;
use crate::form::{self, Field, FormContext};
use crate::hooks;
use crate::images::{ImageMenu, WantedImage};
pub use crate::images_stand_in::KnownImages;
use crate::options::Options;
pub use crate::subject_stand_in::Subject;
use crate::{Action, AuthorizeRequest, Verdict, inject, lab_files, lab_server, pod, quota};
use crate::{clock_stand_in, data_stand_in, images_stand_in, lab_stand_in, subject_stand_in};

/// A policy with a configuration.
pub struct TestKit<P> {
    policy: P,
    /// The warnings about the configuration.
    pub warnings: Vec<String>,
}

impl<P: hooks::Policy> TestKit<P> {
    /// Creates the policy with a configuration.
    ///
    /// # Errors
    /// All errors in the configuration.
    pub fn new(config: &serde_json::Value) -> Result<Self, Vec<FieldError>> {
        let (policy, warnings) = crate::config::check(&config.to_string(), P::from_config)?;
        Ok(Self { policy, warnings })
    }

    /// The fields that `user` sees.
    ///
    /// # Errors
    /// The error of the hook, or a field whose submissions cannot be checked.
    pub fn fields(&self, user: &User) -> Result<Vec<Field>, Error>
    where
        P: hooks::Form,
    {
        let fields = self.policy.fields(&FormContext { user: user.clone(), server: String::new() })?;
        form::check(&fields)?;
        Ok(fields)
    }

    /// The options from a submission of `user`.
    ///
    /// # Errors
    /// The error of the hook.
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
    /// The error of the hook.
    pub fn limits(&self, user: &User) -> Result<quota::Quota, Error>
    where
        P: hooks::Quota,
    {
        self.policy.limits(user, &quota::Usage { labs: 0 })
    }

    /// Decides whether `user` may start a lab.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn may_spawn(&self, user: &User) -> Result<Verdict, Error>
    where
        P: hooks::Authorize,
    {
        self.may(Action::Spawn, user)
    }

    /// Decides whether `user` may perform this action, with empty options.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn may(&self, action: Action, user: &User) -> Result<Verdict, Error>
    where
        P: hooks::Authorize,
    {
        let request =
            AuthorizeRequest { action, user: user.clone(), server: String::new(), options: Vec::new() };
        self.policy.decide(&request)
    }

    /// Decides whether `user` may perform this action on the subject: start this kernel, or a pool of so many workers.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn may_with(&self, action: Action, user: &User, subject: &Subject) -> Result<Verdict, Error>
    where
        P: hooks::Authorize,
    {
        subject_stand_in::with(subject, || self.may(action, user))
    }

    /// The settings of the pod of `user`'s lab with these options. Template fields expand to unchanged names and not to
    /// slugs: `{username}` is the username, `{pvc_name}` is `claim-` and the username; `{pod_name}` begins with `nb-`
    /// and `{namespace}` with `ns-`. Formats such as `{username:.8}` are refused here, because only the service
    /// supports them.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn customize(&self, user: &User, with: &serde_json::Value) -> Result<pod::Customization, Error>
    where
        P: hooks::BuildPod,
    {
        self.customize_with(user, &options(with))
    }

    /// Like [`TestKit::customize`], for options that [`TestKit::parse`] returned.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn customize_with(&self, user: &User, with: &Options) -> Result<pod::Customization, Error>
    where
        P: hooks::BuildPod,
    {
        lab_stand_in::of(user, || self.policy.customize(user, "", with))
    }

    /// The menu of `user` while the service knows these images.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn menu(&self, user: &User, known: &KnownImages) -> Result<Option<ImageMenu>, Error>
    where
        P: hooks::Images,
    {
        images_stand_in::with(known, || self.policy.menu(user, ""))
    }

    /// The images to pull in advance while the service knows these images.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn prepull(&self, known: &KnownImages) -> Result<Vec<WantedImage>, Error>
    where
        P: hooks::Images,
    {
        images_stand_in::with(known, || self.policy.prepull())
    }

    /// Decides whether `user` may have a lab in this workload, and which parts of the workload the lab sees.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn inject(&self, user: &User, workload: &inject::Workload) -> Result<inject::Verdict, Error>
    where
        P: hooks::Inject,
    {
        self.policy.inject(user, "", &Options::default(), workload)
    }

    /// Passes an event to the policy.
    pub fn on_event(&self, event: &Event)
    where
        P: hooks::Events,
    {
        self.policy.on_event(event);
    }

    /// The text files of `user`'s lab with these options.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn lab_files(&self, user: &User, with: &serde_json::Value) -> Result<Vec<lab_files::TextFile>, Error>
    where
        P: hooks::LabFiles,
    {
        lab_stand_in::of(user, || self.policy.lab_files(user, "", &options(with)))
    }

    /// The port and the probe of `user`'s lab with these options.
    ///
    /// # Errors
    /// The error of the hook.
    pub fn lab_server(&self, user: &User, with: &serde_json::Value) -> Result<lab_server::Settings, Error>
    where
        P: hooks::LabServer,
    {
        lab_stand_in::of(user, || self.policy.lab_server(user, "", &options(with)))
    }
}

/// Calls hooks at this time, in milliseconds since the Unix epoch. The default time is the beginning of the epoch.
pub fn at<T>(now_millis: u64, hooks: impl FnOnce() -> T) -> T {
    clock_stand_in::at(now_millis, hooks)
}

/// Calls hooks about this subject, such as a kernel.
pub fn about<T>(subject: &Subject, hooks: impl FnOnce() -> T) -> T {
    subject_stand_in::with(subject, hooks)
}

/// Calls hooks while the service knows these images.
pub fn with_images<T>(known: &KnownImages, hooks: impl FnOnce() -> T) -> T {
    images_stand_in::with(known, hooks)
}

/// Calls hooks while the site has this data.
pub fn with_data<T>(name: &str, data: &serde_json::Value, hooks: impl FnOnce() -> T) -> T {
    data_stand_in::with(name, data, hooks)
}

/// Options from a JSON object. Values that are not scalars are left out.
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

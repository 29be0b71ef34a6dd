//! The hooks that a policy may implement: one trait for each interface of `wit/`.

use crate::bindings::types::{Error, FieldError, User};
use crate::config::Section;
use crate::event::Event;
use crate::form::{self, Field, FormContext};
use crate::options::Options;
use crate::{AuthorizeRequest, Info, Verdict, images, inject, lab_files, lab_server, pod, quota, submission};

/// A policy: its description, and its creation from a configuration.
pub trait Policy: Sized + 'static {
    /// Name, version and description.
    fn info() -> Info;

    /// JSON Schema (2020-12) of the configuration.
    fn config_schema() -> &'static str {
        "true"
    }

    /// Reads the configuration. Errors are reported through the section; if there are any, the returned value is
    /// discarded.
    ///
    /// The service calls this once when the policy is loaded, and begins all calls with a copy of the returned value.
    /// The value must therefore not depend on time, on random numbers, on the site's data, or on the service's
    /// knowledge of images. If it asks [`crate::host`] for any of these, there is no such copy, and every call runs
    /// this anew.
    fn from_config(config: &mut Section<'_>) -> Self;
}

/// The spawn form.
pub trait Form: Policy {
    /// The fields that this user sees.
    ///
    /// # Errors
    /// The reason why there is no form.
    fn fields(&self, context: &FormContext) -> Result<Vec<Field>, Error>;

    /// The form. Override it to return your own HTML, which needs the grant `raw-html`.
    ///
    /// # Errors
    /// The reason why there is no form.
    fn render(&self, context: &FormContext) -> Result<form::Form, Error> {
        self.fields(context).map(form::Form::Fields)
    }

    /// Converts a submission to options. The default implementation checks it against [`Form::fields`].
    ///
    /// # Errors
    /// All fields that are wrong.
    fn parse(&self, submission: &Options, context: &FormContext) -> Result<Options, Vec<FieldError>> {
        submission::check_form(self.fields(context), submission)
    }
}

/// Limits the resources of a user.
pub trait Quota: Policy {
    /// The limits of `user`. An absent limit means no limit.
    ///
    /// # Errors
    /// The reason why there are no limits.
    fn limits(&self, user: &User, usage: &quota::Usage) -> Result<quota::Quota, Error>;
}

/// Decides whether a user may perform an action.
pub trait Authorize: Policy {
    /// Allows or denies the action.
    ///
    /// # Errors
    /// The reason why there is no verdict.
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error>;
}

/// Decides who may have a lab in the pods of a workload, and which parts of the pods the lab sees.
pub trait Inject: Policy {
    /// Allows or denies a lab of `user` in `workload`.
    ///
    /// # Errors
    /// The reason why there is no verdict.
    fn inject(
        &self,
        user: &User,
        server: &str,
        options: &Options,
        workload: &inject::Workload,
    ) -> Result<inject::Verdict, Error>;
}

/// Receives events about labs and their children.
pub trait Events: Policy {
    /// Handles an event. Nobody waits for the result, so the only possible effect is a line in the log.
    fn on_event(&self, event: &Event);
}

/// Decides the settings of the lab's pod.
pub trait BuildPod: Policy {
    /// The settings that this policy wants for the pod.
    ///
    /// # Errors
    /// The reason why there is no answer.
    fn customize(&self, user: &User, server: &str, options: &Options) -> Result<pod::Customization, Error>;
}

/// Decides how the program in the lab's container is reached.
pub trait LabServer: Policy {
    /// The port and the probe of this lab. Absent values come from the service's configuration.
    ///
    /// # Errors
    /// The reason why there is no answer.
    fn lab_server(&self, user: &User, server: &str, options: &Options)
    -> Result<lab_server::Settings, Error>;
}

/// Decides which text files a lab has.
pub trait LabFiles: Policy {
    /// The files of this lab, which are read-only; at most 512 KiB together. Users can read them, and so can everybody who reads
    /// `ConfigMap`s: a secret is no file.
    ///
    /// # Errors
    /// The reason why there is no answer.
    fn lab_files(
        &self,
        user: &User,
        server: &str,
        options: &Options,
    ) -> Result<Vec<lab_files::TextFile>, Error>;
}

/// Decides which images users can choose, and which are pulled to the nodes in advance.
pub trait Images: Policy {
    /// The menu of this user; `None` if this policy has none. [`crate::host::images`] returns the images of a
    /// repository.
    ///
    /// # Errors
    /// The reason why there is no menu.
    fn menu(&self, user: &User, server: &str) -> Result<Option<images::ImageMenu>, Error>;

    /// The images that nodes pull before anyone asks for them, the most important first.
    ///
    /// # Errors
    /// The reason why there is no answer.
    fn prepull(&self) -> Result<Vec<images::WantedImage>, Error> {
        Ok(Vec::new())
    }
}

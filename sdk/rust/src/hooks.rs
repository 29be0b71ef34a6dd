//! What a policy may decide: a trait for each interface of `wit/`.

use crate::bindings::types::{Error, FieldError, User};
use crate::config::Section;
use crate::form::{self, Field, FormContext};
use crate::options::Options;
use crate::{AuthorizeRequest, Info, Verdict, pod, quota, submission};

/// A policy: who it is, and how it comes out of its configuration.
pub trait Policy: Sized {
    /// Name, version and description.
    fn info() -> Info;

    /// JSON Schema (2020-12) of the configuration.
    fn config_schema() -> &'static str {
        "true"
    }

    /// Reads the configuration. Problems are noted in the section; when there are any, what is returned is
    /// thrown away.
    fn from_config(config: &mut Section<'_>) -> Self;
}

/// The spawn form.
pub trait Form: Policy {
    /// The fields this user sees.
    ///
    /// # Errors
    /// Why they see none.
    fn fields(&self, context: &FormContext) -> Result<Vec<Field>, Error>;

    /// The form. Override it to write HTML of your own, which needs the grant `raw-html`.
    ///
    /// # Errors
    /// Why they see none.
    fn render(&self, context: &FormContext) -> Result<form::Form, Error> {
        self.fields(context).map(form::Form::Fields)
    }

    /// The submission as options. By default it is checked against [`Form::fields`].
    ///
    /// # Errors
    /// Every field that is wrong.
    fn parse(&self, submission: &Options, context: &FormContext) -> Result<Options, Vec<FieldError>> {
        submission::check_form(self.fields(context), submission)
    }
}

/// How much a user may have.
pub trait Quota: Policy {
    /// The limits of `user`; what is absent does not limit.
    ///
    /// # Errors
    /// Why there is no answer.
    fn limits(&self, user: &User, usage: &quota::Usage) -> Result<quota::Quota, Error>;
}

/// May this happen at all?
pub trait Authorize: Policy {
    /// The verdict.
    ///
    /// # Errors
    /// Why there is no answer.
    fn decide(&self, request: &AuthorizeRequest) -> Result<Verdict, Error>;
}

/// What the lab's pod looks like.
pub trait BuildPod: Policy {
    /// What this policy says about the pod.
    ///
    /// # Errors
    /// Why there is no answer.
    fn customize(&self, user: &User, server: &str, options: &Options) -> Result<pod::Customization, Error>;
}

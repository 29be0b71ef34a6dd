use std::fmt;

use serde::Serialize;

/// A function of a policy that the service calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(into = "&'static str")]
pub enum Hook {
    /// Describes the policy: its title, version and purpose.
    Describe,
    /// Checks the policy's configuration.
    Validate,
    /// Prepares the policy for its calls.
    Prepare,
    /// Creates the spawn form.
    RenderForm,
    /// Turns a submission of the form into options.
    ParseForm,
    /// Sets the limits of a user.
    Quota,
    /// Decides whether an action is allowed.
    Authorize,
    /// Decides whether a lab may be put into a workload.
    Inject,
    /// Receives events.
    Events,
    /// Customizes the lab's pod.
    BuildPod,
    /// Decides how the program in the lab's container is reached.
    LabServer,
    /// Offers images.
    ImageMenu,
    /// Names the images that nodes should have.
    Prepull,
}

impl Hook {
    /// Returns the interface and function in `wit/`, such as `form.render`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Describe => "metadata.describe",
            Self::Validate => "config.validate",
            Self::Prepare => "prepare.run",
            Self::RenderForm => "form.render",
            Self::ParseForm => "form.parse",
            Self::Quota => "quota.limits",
            Self::Authorize => "authorize.decide",
            Self::Inject => "inject.decide",
            Self::Events => "events.on-event",
            Self::BuildPod => "build-pod.customize",
            Self::LabServer => "lab-server.decide",
            Self::ImageMenu => "images.menu",
            Self::Prepull => "images.prepull",
        }
    }
}

impl From<Hook> for &'static str {
    fn from(hook: Hook) -> Self {
        hook.name()
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

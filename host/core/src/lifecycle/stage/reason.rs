//! Reasons in the state of pods and in events.

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident,)*) => {
        /// A reason that the analysis knows. Kubernetes has no list of them: these are from the sources of the kubelet,
        /// the scheduler and the controllers. The service's own reasons come last.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Reason {
            $($(#[$doc])* $variant,)*
        }

        impl Reason {
            /// Parses a reason; `None` for a reason that the analysis does not know.
            pub(super) fn known(text: &str) -> Option<Self> {
                match text {
                    $(stringify!($variant) => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Returns the reason as Kubernetes writes it.
            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => stringify!($variant),)*
                }
            }
        }
    };
}

reasons! {
    BackOff,
    Completed,
    CrashLoopBackOff,
    CreateContainerConfigError,
    CreateContainerError,
    DeadlineExceeded,
    ErrImageNeverPull,
    ErrImagePull,
    Evicted,
    Failed,
    FailedAttachVolume,
    FailedBinding,
    FailedCreatePodSandBox,
    FailedMount,
    FailedScheduling,
    ImageInspectError,
    ImagePullBackOff,
    InspectFailed,
    InvalidImageName,
    NodeLost,
    NodeNotReady,
    OOMKilled,
    PodInitializing,
    Preempted,
    ProvisioningFailed,
    Pulled,
    Pulling,
    RegistryUnavailable,
    RunContainerError,
    SignatureValidationFailed,
    TaintManagerEviction,
    Unhealthy,
    Unschedulable,
    /// The lab's container ended with an error and is not restarted.
    ContainerFailed,
    /// An init container ended with an error and is not restarted.
    InitContainerFailed,
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.as_str().to_owned()
    }
}

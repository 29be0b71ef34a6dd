//! Reasons in the state of pods and in events.

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal,)*) => {
        /// A reason that the analysis knows. Kubernetes has no list of them: these are from the sources of the kubelet,
        /// the scheduler and the controllers. Those of the service itself come last.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Reason {
            $($(#[$doc])* $variant,)*
        }

        impl Reason {
            /// `None` for a reason that the analysis does not know.
            pub(super) fn known(text: &str) -> Option<Self> {
                match text {
                    $($text => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// The reason as Kubernetes writes it.
            pub(super) fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}

reasons! {
    BackOff = "BackOff",
    Completed = "Completed",
    CrashLoopBackOff = "CrashLoopBackOff",
    CreateContainerConfigError = "CreateContainerConfigError",
    CreateContainerError = "CreateContainerError",
    DeadlineExceeded = "DeadlineExceeded",
    ErrImageNeverPull = "ErrImageNeverPull",
    ErrImagePull = "ErrImagePull",
    Evicted = "Evicted",
    Failed = "Failed",
    FailedAttachVolume = "FailedAttachVolume",
    FailedBinding = "FailedBinding",
    FailedCreatePodSandBox = "FailedCreatePodSandBox",
    FailedMount = "FailedMount",
    FailedScheduling = "FailedScheduling",
    ImageInspectError = "ImageInspectError",
    ImagePullBackOff = "ImagePullBackOff",
    InspectFailed = "InspectFailed",
    InvalidImageName = "InvalidImageName",
    NodeLost = "NodeLost",
    NodeNotReady = "NodeNotReady",
    OutOfMemoryKilled = "OOMKilled",
    PodInitializing = "PodInitializing",
    Preempted = "Preempted",
    ProvisioningFailed = "ProvisioningFailed",
    Pulled = "Pulled",
    Pulling = "Pulling",
    RegistryUnavailable = "RegistryUnavailable",
    RunContainerError = "RunContainerError",
    SignatureValidationFailed = "SignatureValidationFailed",
    TaintManagerEviction = "TaintManagerEviction",
    Unhealthy = "Unhealthy",
    Unschedulable = "Unschedulable",
    /// The lab's container ended with an error and is not restarted.
    ContainerFailed = "ContainerFailed",
    /// An init container ended with an error and is not restarted.
    InitContainerFailed = "InitContainerFailed",
}

impl From<Reason> for String {
    fn from(reason: Reason) -> Self {
        reason.as_str().to_owned()
    }
}

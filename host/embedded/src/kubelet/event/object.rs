//! Event objects as the kubelet, the scheduler and two controllers write them.

use jiff::Timestamp;
use k8s_openapi::{
    api::core::v1::{Event, EventSource, ObjectReference, Pod},
    apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta, Time},
};

/// Who says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Reporter {
    Kubelet,
    Scheduler,
    NodeController,
    VolumeController,
}

impl Reporter {
    fn component(self) -> &'static str {
        match self {
            Self::Kubelet => "kubelet",
            Self::Scheduler => "default-scheduler",
            Self::NodeController => "node-controller",
            Self::VolumeController => "persistentvolume-controller",
        }
    }
}

/// Something worth an event.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Happening {
    pub(crate) reporter: Reporter,
    pub(crate) warning: bool,
    pub(crate) reason: String,
    pub(crate) message: String,
    /// `spec.containers{notebook}` for events of one container.
    pub(crate) field: Option<String>,
    /// A claim's name when the event is not about the pod.
    pub(crate) claim: Option<String>,
}

impl Happening {
    pub(crate) fn normal(reason: &str, message: impl Into<String>) -> Self {
        Self {
            reporter: Reporter::Kubelet,
            warning: false,
            reason: reason.to_owned(),
            message: message.into(),
            field: None,
            claim: None,
        }
    }

    pub(crate) fn warning(reason: &str, message: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, message) }
    }

    pub(crate) fn by(self, reporter: Reporter) -> Self {
        Self { reporter, ..self }
    }

    pub(crate) fn of_field(self, field: &str) -> Self {
        Self { field: Some(field.to_owned()), ..self }
    }

    pub(crate) fn of_claim(self, claim: &str) -> Self {
        Self { claim: Some(claim.to_owned()), ..self }
    }

    /// The event object of its first occurrence.
    pub(crate) fn event(&self, about: &ObjectReference, node: &str, number: u64, now: Timestamp) -> Event {
        let about = match &self.claim {
            Some(claim) => ObjectReference {
                kind: Some("PersistentVolumeClaim".to_owned()),
                name: Some(claim.clone()),
                uid: None,
                field_path: None,
                ..about.clone()
            },
            None => ObjectReference { field_path: self.field.clone(), ..about.clone() },
        };
        let name = about.name.as_deref().unwrap_or_default();
        let name: String = name.chars().take(220).collect();
        // The scheduler writes the newer form: an eventTime, and no first and last timestamps.
        let newer = self.reporter == Reporter::Scheduler;
        let older = || (!newer).then_some(Time(now));
        Event {
            metadata: ObjectMeta {
                name: Some(format!("{name}.{:x}{number:02x}", now.as_nanosecond())),
                namespace: about.namespace.clone(),
                ..ObjectMeta::default()
            },
            involved_object: about,
            type_: Some(if self.warning { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(self.reason.clone()),
            message: Some(self.message.chars().take(1024).collect()),
            first_timestamp: older(),
            last_timestamp: older(),
            count: (!newer).then_some(1),
            event_time: newer.then_some(MicroTime(now)),
            action: newer.then(|| if self.warning { "Scheduling" } else { "Binding" }.to_owned()),
            source: (!newer).then(|| EventSource {
                component: Some(self.reporter.component().to_owned()),
                host: (self.reporter == Reporter::Kubelet).then(|| node.to_owned()),
            }),
            reporting_component: Some(self.reporter.component().to_owned()),
            reporting_instance: Some(node.to_owned()),
            ..Event::default()
        }
    }
}

/// How events name a pod.
pub(crate) fn reference(pod: &Pod) -> ObjectReference {
    ObjectReference {
        api_version: Some("v1".to_owned()),
        kind: Some("Pod".to_owned()),
        namespace: pod.metadata.namespace.clone(),
        name: pod.metadata.name.clone(),
        uid: pod.metadata.uid.clone(),
        ..ObjectReference::default()
    }
}

/// How events name a container of a pod.
pub(crate) fn container_field(container: &str, init: bool) -> String {
    let list = if init { "initContainers" } else { "containers" };
    format!("spec.{list}{{{container}}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about() -> ObjectReference {
        let pod = serde_json::from_value(
            serde_json::json!({"metadata": {"name": "nb", "namespace": "lab", "uid": "u"}}),
        );
        reference(&pod.unwrap())
    }

    fn now() -> Timestamp {
        Timestamp::from_second(1_700_000_000).unwrap()
    }

    #[test]
    fn kubelet_events_carry_count_and_timestamps() {
        let event = Happening::normal("Started", "Started container notebook")
            .of_field(&container_field("notebook", false))
            .event(&about(), "node", 1, now());
        assert_eq!(event.involved_object.field_path.as_deref(), Some("spec.containers{notebook}"));
        assert_eq!((event.count, event.first_timestamp.is_some(), event.event_time), (Some(1), true, None));
        assert_eq!(event.source.unwrap().component.as_deref(), Some("kubelet"));
        assert!(event.metadata.name.unwrap().starts_with("nb."));
    }

    #[test]
    fn scheduler_events_carry_only_an_event_time() {
        let event = Happening::warning("FailedScheduling", "no").by(Reporter::Scheduler).event(
            &about(),
            "n",
            1,
            now(),
        );
        assert_eq!((event.count, event.first_timestamp, event.last_timestamp), (None, None, None));
        assert!(event.event_time.is_some());
        assert_eq!(event.action.as_deref(), Some("Scheduling"));
    }

    #[test]
    fn a_claims_event_is_about_the_claim() {
        let event =
            Happening::normal("FailedBinding", "none").of_claim("home").event(&about(), "n", 1, now());
        assert_eq!(event.involved_object.kind.as_deref(), Some("PersistentVolumeClaim"));
        assert_eq!(event.involved_object.name.as_deref(), Some("home"));
        assert_eq!(event.involved_object.uid, None);
    }
}

//! A pod in a few words, as `kubectl get pods` tells it.

use super::age::age;
use super::metadata::{self, Document, at};
use jiff::Timestamp;
use serde_json::Value;

fn list<'a>(pod: &'a Document, path: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    at(pod, path).and_then(Value::as_array).into_iter().flatten()
}

fn text<'a>(value: Option<&'a Value>, name: &str) -> Option<&'a str> {
    value?.get(name)?.as_str().filter(|text| !text.is_empty())
}

fn state<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    status.get("state")?.get(name)
}

fn is_on(value: &Value, name: &str) -> bool {
    value.get(name).and_then(Value::as_bool) == Some(true)
}

/// `1/2`: containers that are ready, and all of them.
pub(super) fn ready(pod: &Document) -> String {
    let ready = list(pod, "/status/containerStatuses").filter(|status| is_on(status, "ready")).count();
    format!("{ready}/{}", list(pod, "/spec/containers").count())
}

/// How often containers were restarted, and when last.
pub(super) fn restarts(pod: &Document, now: Timestamp) -> String {
    let statuses = || list(pod, "/status/containerStatuses");
    let count: i64 = statuses().filter_map(|s| s.get("restartCount").and_then(Value::as_i64)).sum();
    let ended = statuses().filter_map(|s| {
        s.get("lastState")?.get("terminated")?.get("finishedAt")?.as_str()?.parse::<Timestamp>().ok()
    });
    match ended.max() {
        Some(last) if count > 0 => format!("{count} ({} ago)", age(last, now)),
        _ => count.to_string(),
    }
}

/// The one word that says most about the pod's state.
pub(super) fn status(pod: &Document) -> String {
    let pod_reason = at(pod, "/status/reason").and_then(Value::as_str);
    if metadata::is_deleting(pod) {
        return if pod_reason == Some("NodeLost") { "Unknown" } else { "Terminating" }.to_owned();
    }
    let phase = at(pod, "/status/phase").and_then(Value::as_str).unwrap_or("Unknown");
    let reason = pod_reason.unwrap_or(phase).to_owned();
    initializing(pod).or_else(|| of_containers(pod)).unwrap_or(reason)
}

fn initializing(pod: &Document) -> Option<String> {
    let total = list(pod, "/spec/initContainers").count();
    for (i, status) in list(pod, "/status/initContainerStatuses").enumerate() {
        let terminated = state(status, "terminated");
        let code = terminated.and_then(|t| t.get("exitCode")).and_then(Value::as_i64);
        if code == Some(0) || is_on(status, "started") {
            continue;
        }
        return Some(if let Some(code) = code {
            match (
                text(terminated, "reason"),
                terminated.and_then(|t| t.get("signal")).and_then(Value::as_i64),
            ) {
                (Some(reason), _) => format!("Init:{reason}"),
                (None, Some(signal @ 1..)) => format!("Init:Signal:{signal}"),
                (None, _) => format!("Init:ExitCode:{code}"),
            }
        } else {
            match text(state(status, "waiting"), "reason") {
                Some(reason) if reason != "PodInitializing" => format!("Init:{reason}"),
                _ => format!("Init:{i}/{total}"),
            }
        });
    }
    None
}

/// What the containers tell: the first one has the last word.
fn of_containers(pod: &Document) -> Option<String> {
    let mut word = None;
    let mut running = false;
    let statuses: Vec<_> = list(pod, "/status/containerStatuses").collect();
    for status in statuses.into_iter().rev() {
        let terminated = state(status, "terminated");
        if let Some(reason) = text(state(status, "waiting"), "reason") {
            word = Some(reason.to_owned());
        } else if let Some(reason) = text(terminated, "reason") {
            word = Some(reason.to_owned());
        } else if let Some(terminated) = terminated {
            let number = |name: &str| terminated.get(name).and_then(Value::as_i64).unwrap_or(0);
            word = Some(match number("signal") {
                0 => format!("ExitCode:{}", number("exitCode")),
                signal => format!("Signal:{signal}"),
            });
        } else if is_on(status, "ready") && state(status, "running").is_some() {
            running = true;
        }
    }
    if word.as_deref() == Some("Completed") && running {
        let ready = list(pod, "/status/conditions")
            .any(|c| text(Some(c), "type") == Some("Ready") && text(Some(c), "status") == Some("True"));
        return Some(if ready { "Running" } else { "NotReady" }.to_owned());
    }
    word
}

#[cfg(test)]
mod tests {
    use super::{ready, restarts, status};
    use serde_json::{Value, json};

    fn word(pod: &Value) -> String {
        status(pod.as_object().unwrap())
    }

    #[test]
    fn the_status_is_what_kubectl_shows() {
        let of = |statuses: Value| json!({"status": {"phase": "Running", "containerStatuses": [statuses]}});
        for (pod, expected) in [
            (json!({"status": {"phase": "Pending"}}), "Pending"),
            (json!({"status": {"phase": "Failed", "reason": "Evicted"}}), "Evicted"),
            (
                json!({"metadata": {"deletionTimestamp": "2024-01-01T00:00:00Z"}, "status": {"phase": "Running"}}),
                "Terminating",
            ),
            (of(json!({"state": {"waiting": {"reason": "ImagePullBackOff"}}})), "ImagePullBackOff"),
            (of(json!({"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}})), "OOMKilled"),
            (of(json!({"state": {"terminated": {"exitCode": 3}}})), "ExitCode:3"),
            (of(json!({"ready": true, "state": {"running": {}}})), "Running"),
            (
                json!({"spec": {"initContainers": [{}, {}]}, "status": {"phase": "Pending", "initContainerStatuses": [
                    {"state": {"terminated": {"exitCode": 0}}}, {"state": {"running": {}}}]}}),
                "Init:1/2",
            ),
        ] {
            assert_eq!(word(&pod), expected, "{pod}");
        }
    }

    #[test]
    fn ready_and_restarts_are_counted() {
        let pod = json!({"spec": {"containers": [{}, {}]}, "status": {"containerStatuses": [
            {"ready": true, "restartCount": 2, "lastState": {"terminated": {"finishedAt": "2024-01-01T00:00:00Z"}}},
            {"ready": false, "restartCount": 1}]}});
        let pod = pod.as_object().unwrap();
        assert_eq!(ready(pod), "1/2");
        assert_eq!(restarts(pod, "2024-01-01T00:05:00Z".parse().unwrap()), "3 (5m ago)");
    }
}

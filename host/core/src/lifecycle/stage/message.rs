//! Sentences for the user. `noun` names the pod: a lab, or a child of a lab. The cluster's own message follows in
//! brackets, for those who help the user.

/// Largest length of the cluster's message in characters; the rest is cut off.
const MAX_DETAIL_CHARS: usize = 300;

/// Returns `text`, followed by the cluster's message in brackets if there is one.
pub(super) fn with_detail(text: &str, detail: &str) -> String {
    let detail = detail.trim().trim_end_matches('.');
    match detail.char_indices().nth(MAX_DETAIL_CHARS) {
        _ if detail.is_empty() => format!("{text}."),
        Some((end, _)) => format!("{text} ({}...).", &detail[..end]),
        None => format!("{text} ({detail})."),
    }
}

pub(super) fn image_pull(image: &str, detail: &str) -> String {
    let detail = pull_error(detail);
    with_detail(&format!("The image {image} could not be downloaded: {}", pull_cause(detail)), detail)
}

/// Returns the runtime's own message. In the event it follows `Failed to pull image "NAME": `; the container's state
/// has no such prefix.
fn pull_error(detail: &str) -> &str {
    let event = detail.strip_prefix("Failed to pull image \"").and_then(|rest| rest.split_once("\": "));
    event.map_or(detail, |(_, error)| error)
}

/// Returns the cause of a failed download, from the message of registry or runtime. These messages are not a stable
/// interface, so the cause may be missing.
fn pull_cause(detail: &str) -> &'static str {
    let detail = detail.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| detail.contains(word));
    if says(&["unauthorized", "denied", "forbidden", "authentication required"]) {
        "the registry refuses access to it, or it does not exist"
    } else if says(&["not found", "manifest unknown", "does not exist"]) {
        "the registry has no image of this name and tag"
    } else if says(&["no match for platform", "no matching manifest"]) {
        "it is not made for this cluster's machines"
    } else if says(&["no space left"]) {
        "the machine's disk is full"
    } else if says(&["timeout", "no such host", "refused", "unreachable", "tls", "x509", "eof"]) {
        "its registry does not answer"
    } else if says(&["too many requests", "toomanyrequests", "rate limit"]) {
        "its registry allows no more downloads for now"
    } else {
        "the cluster gave up on it"
    }
}

pub(super) fn invalid_image(image: &str) -> String {
    format!("{image:?} is not the name of an image. Choose another image.")
}

pub(super) fn image_never_pulled(image: &str) -> String {
    format!("The image {image} is not on the machine, and this site does not download it.")
}

pub(super) fn config_error(noun: &str, detail: &str) -> String {
    let text = format!("Your {noun} cannot be set up; please tell the site's administrators");
    with_detail(&text, detail)
}

pub(super) fn out_of_memory(what: &str) -> String {
    format!("{what} used more memory than it was given and was stopped. Choose a larger size.")
}

pub(super) fn out_of_memory_and_restarted(what: &str) -> String {
    format!(
        "{what} used more memory than it was given and was restarted. What it had in memory is lost; stop it and choose a larger size if this happens again."
    )
}

pub(super) fn crash_loop(what: &str, restarts: u32, ending: &str) -> String {
    let times = if restarts == 1 { "once".to_owned() } else { format!("{restarts} times") };
    format!("{what} stopped unexpectedly ({ending}) and was restarted {times} in vain.")
}

pub(super) fn restarted(what: &str, restart: u32, of: u32, ending: &str) -> String {
    format!("{what} stopped unexpectedly ({ending}) and is being restarted ({restart} of {of}).")
}

pub(super) fn stopping(what: &str, ending: &str) -> String {
    format!("{what} stopped unexpectedly ({ending}) and is being restarted.")
}

pub(super) fn ended_badly(what: &str, ending: &str) -> String {
    format!("{what} stopped unexpectedly ({ending}).")
}

pub(super) fn unschedulable(noun: &str, detail: &str) -> String {
    // The rest is about preemption and dynamic resources, which does not help a user.
    let rest = [" preemption:", " no new claims to deallocate"];
    let end = rest.iter().filter_map(|rest| detail.find(rest)).min().unwrap_or(detail.len());
    let cut = detail[..end].trim_end_matches(". not found");
    let says = |words: &[&str]| words.iter().any(|words| detail.contains(words));
    let text = if waits_for_volume(detail) {
        format!("Your volume is not there yet; your {noun} starts as soon as it is")
    } else if says(&["persistentvolumeclaim \""]) {
        format!("The volume of your {noun} does not exist; please tell the site's administrators")
    } else if says(&["Insufficient", "Too many pods"]) || detail.is_empty() {
        format!("No machine has room for your {noun} at the moment; it starts as soon as one has")
    } else if says(&["persistent volumes to bind"]) {
        format!("No machine has storage for your volume at the moment; your {noun} starts as soon as one has")
    } else {
        format!("No machine can take your {noun} at the moment; it starts as soon as one can")
    };
    with_detail(&text, cut)
}

/// Returns true if the scheduler only waits until a claim is bound, which is a part of each start with a new volume.
pub(super) fn waits_for_volume(detail: &str) -> bool {
    detail.contains("unbound immediate PersistentVolumeClaims")
}

pub(super) fn volume_unbound(claim: &str, detail: &str) -> String {
    with_detail(
        &format!("There is no storage for your volume {claim}; please tell the site's administrators"),
        detail,
    )
}

pub(super) fn volume_late(claim: &str, detail: &str) -> String {
    with_detail(&format!("Your volume {claim} is not there yet; the cluster tries again"), detail)
}

pub(super) fn mount_late(detail: &str) -> String {
    with_detail("A volume cannot be attached yet; the cluster tries again", detail)
}

pub(super) fn unhealthy(noun: &str, detail: &str) -> String {
    with_detail(&format!("Your {noun} does not answer yet"), detail)
}

pub(super) fn node_not_ready(noun: &str) -> String {
    format!("The machine that your {noun} is on does not answer.")
}

pub(super) fn evicted(noun: &str, detail: &str) -> String {
    with_detail(&format!("The cluster removed your {noun} from its machine"), detail)
}

pub(super) fn deadline_exceeded(noun: &str) -> String {
    format!("Your {noun} reached the longest time it was allowed to run.")
}

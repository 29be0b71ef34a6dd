//! Sentences for the user. `noun` names the pod: a lab, or a child of a lab. The cluster's own message follows in
//! brackets, for those who help the user.

use super::pull_cause::PullCause;
use crate::values::credential::redact_line;
use crate::values::log_lines::printable;

/// Largest length of the cluster's message in characters; the rest is cut off.
const MAX_DETAIL_CHARS: usize = 300;

/// The text between a message and the last lines of a log.
const LAST_WORDS: &str = " It printed last: ";
/// Largest number of lines of a log in a message, and their largest length together, in characters.
const MAX_LAST_LINES: usize = 3;
const MAX_LAST_CHARS: usize = 300;

/// Returns the last lines of a log in one line, without credentials. `None` if there is no text.
pub(super) fn last_words(log: &str) -> Option<String> {
    let lines = log.lines().rev().map(|line| printable(line).trim().to_owned());
    let last = lines.filter(|line| !line.is_empty()).take(MAX_LAST_LINES);
    let mut lines: Vec<String> = last.map(|line| redact_line(&line)).collect();
    lines.reverse();
    let text = lines.join(" / ");
    let cut = text.chars().count().saturating_sub(MAX_LAST_CHARS);
    match text.char_indices().nth(cut) {
        None => None,
        Some(_) if cut == 0 => Some(text),
        Some((begin, _)) => Some(format!("...{}", &text[begin..])),
    }
}

/// Returns `text`, followed by the last lines of a container's log if there are any.
fn with_last_words(text: String, last: Option<&str>) -> String {
    match last {
        None => text,
        Some(last) => format!("{text}{LAST_WORDS}{last}"),
    }
}

/// Returns a message without the last lines of the log, which may differ each time.
pub(crate) fn without_last_words(message: &str) -> &str {
    message.split_once(LAST_WORDS).map_or(message, |(text, _)| text)
}

/// Returns `text`, followed by the cluster's message in brackets if there is one.
pub(super) fn with_detail(text: &str, detail: &str) -> String {
    let detail = detail.trim().trim_end_matches('.');
    match detail.char_indices().nth(MAX_DETAIL_CHARS) {
        _ if detail.is_empty() => format!("{text}."),
        Some((end, _)) => format!("{text} ({}...).", &detail[..end]),
        None => format!("{text} ({detail})."),
    }
}

/// Returns the sentence for a failed download. `again` is true if the kubelet's next attempts are waited for.
pub(super) fn image_pull(image: &str, cause: PullCause, again: bool, detail: &str) -> String {
    let again = if again { "; the cluster tries again" } else { "" };
    with_detail(&format!("The image {image} could not be downloaded: {}{again}", cause.text()), detail)
}

/// Returns the runtime's own message. In the event it follows `Failed to pull image "NAME": `; the container's state
/// has no such prefix.
pub(super) fn pull_error(detail: &str) -> &str {
    let event = detail.strip_prefix("Failed to pull image \"").and_then(|rest| rest.split_once("\": "));
    event.map_or(detail, |(_, error)| error)
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

/// How a container ended, in words, and the last lines of its log.
pub(super) struct Ending {
    pub(super) how: String,
    pub(super) last_words: Option<String>,
}

pub(super) fn crash_loop(what: &str, restarts: u32, ending: &Ending) -> String {
    let times = if restarts == 1 { "once".to_owned() } else { format!("{restarts} times") };
    let text = format!("{what} stopped unexpectedly ({}) and was restarted {times} in vain.", ending.how);
    with_last_words(text, ending.last_words.as_deref())
}

pub(super) fn restarted(what: &str, restart: u32, of: u32, ending: &Ending) -> String {
    let text =
        format!("{what} stopped unexpectedly ({}) and is being restarted ({restart} of {of}).", ending.how);
    with_last_words(text, ending.last_words.as_deref())
}

pub(super) fn stopping(what: &str, ending: &Ending) -> String {
    let text = format!("{what} stopped unexpectedly ({}) and is being restarted.", ending.how);
    with_last_words(text, ending.last_words.as_deref())
}

pub(super) fn ended_badly(what: &str, ending: &Ending) -> String {
    let text = format!("{what} stopped unexpectedly ({}).", ending.how);
    with_last_words(text, ending.last_words.as_deref())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_log_are_one_line_without_colours_and_credentials() {
        let log = "first\n\nTraceback:\n  File \"a\"\n\u{1b}[1;31mError\u{1b}[0m: API_TOKEN=abc is wrong\n";
        let expected = r#"Traceback: / File "a" / Error: API_TOKEN=<redacted> is wrong"#;
        assert_eq!(last_words(log).as_deref(), Some(expected));
        assert_eq!(last_words(" \n\n"), None);
        let cut = last_words(&"ü".repeat(5_000)).unwrap();
        assert_eq!(cut.chars().count(), MAX_LAST_CHARS + 3);
    }
}

//! The cause of a failed download, from the message of the registry or the runtime. These messages are not a stable
//! interface, so the cause may be unknown.

/// The cause of a failed download.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PullCause {
    /// The registry, or the kubelet's own limit (`pull QPS exceeded`), allows no more downloads for now.
    Throttled,
    /// The registry or the network does not answer, or a connection ended early.
    NoAnswer,
    /// No registry has this name. It is more often misspelled than missing for a moment.
    NoSuchRegistry,
    /// The registry answers with an error of its own.
    ServerError,
    DiskFull,
    OtherPlatform,
    Denied,
    NotFound,
    /// The certificate of the registry is not accepted.
    Certificate,
    Unknown,
}

/// Parts of messages in lower case, and the cause that they show. The first that is found counts: a message about another
/// platform also says `not found`, and one about a limit may say how to be authorized.
const WORDS: [(PullCause, &[&str]); 9] = [
    (PullCause::Throttled, &["too many requests", "toomanyrequests", "rate limit", "qps exceeded"]),
    (PullCause::OtherPlatform, &["no match for platform", "no matching manifest"]),
    (PullCause::Certificate, &["x509", "certificate"]),
    (PullCause::DiskFull, &["no space left"]),
    (
        PullCause::ServerError,
        &[
            "internal server error",
            "bad gateway",
            "service unavailable",
            "gateway time",
            "server misbehaving",
        ],
    ),
    (
        PullCause::NoAnswer,
        &[
            "timeout",
            "timed out",
            "deadline exceeded",
            "connection refused",
            "connection reset",
            "broken pipe",
            "unreachable",
            "no route to host",
            " eof",
        ],
    ),
    (PullCause::NoSuchRegistry, &["no such host"]),
    (
        PullCause::Denied,
        &["unauthorized", "denied", "forbidden", "authentication required", "authorization failed"],
    ),
    (PullCause::NotFound, &["not found", "manifest unknown", "does not exist"]),
];

impl PullCause {
    /// Reads the cause from a message about this image. Names of images and addresses count for nothing: they may have
    /// any of the words.
    pub(super) fn from_message(message: &str, image: &str) -> Self {
        let unquoted: Vec<&str> = message.split('"').step_by(2).collect();
        let unquoted = unquoted.join(" ");
        let is_name = |word: &&str| !word.contains('/') && word.trim_end_matches([':', ',']) != image;
        let words: Vec<&str> = unquoted.split_whitespace().filter(is_name).collect();
        let message = format!(" {}", words.join(" ").to_lowercase());
        let says = |(_, words): &&(Self, &[&str])| words.iter().any(|word| message.contains(word));
        WORDS.iter().find(says).map_or(Self::Unknown, |(cause, _)| *cause)
    }

    /// True if the next attempt of the kubelet may succeed although nobody has changed anything.
    pub(super) fn may_pass(self) -> bool {
        match self {
            Self::Throttled | Self::NoAnswer | Self::ServerError | Self::DiskFull => true,
            Self::NoSuchRegistry
            | Self::OtherPlatform
            | Self::Denied
            | Self::NotFound
            | Self::Certificate
            | Self::Unknown => false,
        }
    }

    /// The cause in the sentence "The image NAME could not be downloaded: …".
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Throttled => "its registry allows no more downloads for now",
            Self::NoAnswer => "its registry does not answer",
            Self::NoSuchRegistry => "there is no such registry",
            Self::ServerError => "its registry has a fault",
            Self::DiskFull => "the machine's disk is full",
            Self::OtherPlatform => "it is not made for this cluster's machines",
            Self::Denied => "the registry refuses access to it, or it does not exist",
            Self::NotFound => "the registry has no image of this name and tag",
            Self::Certificate => "its registry's certificate is not accepted",
            Self::Unknown => "the cluster gave up on it",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Messages of kubelet, containerd, CRI-O and registries.
    const MESSAGES: &str = r#"
Throttled     | pull QPS exceeded
Throttled     | rpc error: code = Unknown desc = failed to pull and unpack image "docker.io/library/python:3": failed to copy: httpReadSeeker: failed open: unexpected status code https://registry-1.docker.io/v2/library/python/manifests/sha256:0a: 429 Too Many Requests - Server message: toomanyrequests: You have reached your unauthenticated pull rate limit. https://www.docker.com/increase-rate-limit
NoAnswer      | rpc error: code = DeadlineExceeded desc = failed to pull and unpack image "quay.io/a/b:1": failed to resolve reference "quay.io/a/b:1": failed to do request: Head "https://quay.io/v2/a/b/manifests/1": dial tcp 10.0.0.9:443: i/o timeout
NoSuchRegistry | rpc error: code = Unknown desc = failed to pull and unpack image "quay.io/a/b:1": failed to do request: Head "https://quay.io/v2/a/b/manifests/1": dial tcp: lookup quay.io on 10.96.0.10:53: no such host
NoAnswer      | rpc error: code = Unknown desc = failed to pull and unpack image "quay.io/a/b:1": failed to copy: httpReadSeeker: failed open: failed to do request: Get "https://cdn.example.org/sha256/0a": EOF
NoAnswer      | failed to pull and unpack image "quay.io/a/b:1": failed to copy: read tcp 10.0.0.2:51034->10.0.0.9:443: read: connection reset by peer
ServerError   | failed to pull and unpack image "quay.io/a/b:1": failed to resolve reference "quay.io/a/b:1": unexpected status from HEAD request to https://quay.io/v2/a/b/manifests/1: 503 Service Unavailable
ServerError   | received unexpected HTTP status: 502 Bad Gateway
ServerError   | dial tcp: lookup quay.io on 10.96.0.10:53: server misbehaving
DiskFull      | failed to extract layer sha256:0a: mount callback failed: write /var/lib/containerd/tmpmounts/a: no space left on device
OtherPlatform | rpc error: code = NotFound desc = failed to pull and unpack image "quay.io/a/b:1": no match for platform in manifest: not found
OtherPlatform | choosing image instance: no image found in manifest list for architecture arm64: no matching manifest
Denied        | failed to resolve reference "docker.io/a/b:1": pull access denied, repository does not exist or may require authorization: server message: insufficient_scope: authorization failed
Denied        | failed to authorize: failed to fetch anonymous token: unexpected status from GET request to https://ghcr.io/token: 403 Forbidden
NotFound      | rpc error: code = NotFound desc = failed to pull and unpack image "quay.io/a/b:nope": failed to resolve reference "quay.io/a/b:nope": quay.io/a/b:nope: not found
NotFound      | reading manifest nope in quay.io/a/b: manifest unknown
Certificate   | failed to do request: Head "https://registry.local/v2/a/manifests/1": tls: failed to verify certificate: x509: certificate signed by unknown authority
NotFound      | rpc error: code = NotFound desc = failed to resolve reference "quay.io/geoffrey/denied-timeout:1": quay.io/geoffrey/denied-timeout:1: not found
ServerError   | failed to resolve reference "quay.io/x/certificate-tools:1": unexpected status from HEAD request to https://quay.io/v2/x/certificate-tools/manifests/1: 503 Service Unavailable
NotFound      | timeout:1: not found
Unknown       | Back-off pulling image "quay.io/a/b:1"
"#;

    #[test]
    fn the_cause_is_read_from_messages_of_runtimes_and_registries() {
        for line in MESSAGES.lines().filter(|line| !line.is_empty()) {
            let (cause, message) = line.split_once('|').unwrap();
            assert_eq!(
                format!("{:?}", PullCause::from_message(message, "timeout:1")),
                cause.trim(),
                "{message}"
            );
        }
    }
}

//! What can be wrong with a request.

use std::fmt;

use http::StatusCode;
use serde::Serialize;

/// Defines the kinds of problems with the status of each.
macro_rules! kinds {
    ($($status:ident => $($kind:ident $name:literal),+;)+) => {
        /// What is wrong, as an identifier for programs. It does not change between versions, and has one status.
        #[derive(Clone, Copy, PartialEq, Eq, Serialize)]
        pub(crate) enum ProblemKind {
            $($(#[serde(rename = $name)] $kind,)+)+
        }

        impl ProblemKind {
            /// Returns the status of an answer with this problem.
            pub(crate) fn status(self) -> StatusCode {
                match self {
                    $($(Self::$kind)|+ => StatusCode::$status,)+
                }
            }

            /// Returns the identifier for programs.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $($(Self::$kind => $name,)+)+
                }
            }

            /// Returns all kinds: their statuses and names.
            #[cfg(test)]
            pub(crate) fn all() -> Vec<(u16, &'static str)> {
                vec![$($((StatusCode::$status.as_u16(), $name),)+)+]
            }
        }
    };
}

kinds! {
    BAD_REQUEST =>
        BadRequest "bad_request", IncompleteBody "incomplete_body", MalformedJson "malformed_json",
        NotUtf8 "not_utf8";
    UNAUTHORIZED =>
        InvalidHeader "invalid_header", InvalidToken "invalid_token", NotAuthenticated "not_authenticated",
        UntrustedPeer "untrusted_peer";
    FORBIDDEN =>
        CrossSiteRequest "cross_site_request", IdentityUnknown "identity_unknown",
        PermissionDenied "permission_denied";
    NOT_FOUND =>
        NoEnvironments "no_environments", UnknownBlueprint "unknown_blueprint", UnknownContainer "unknown_container", UnknownJob "unknown_job",
        UnknownKernel "unknown_kernel", UnknownLab "unknown_lab", UnknownPool "unknown_pool",
        UnknownRoute "unknown_route", UnknownTarget "unknown_target";
    METHOD_NOT_ALLOWED => MethodNotAllowed "method_not_allowed";
    REQUEST_TIMEOUT => BodyTimeout "body_timeout";
    CONFLICT =>
        Busy "busy", HubNotConfigured "hub_not_configured", KernelExists "kernel_exists",
        KernelsUnavailable "kernels_unavailable", LabExists "lab_exists", LabNotRunning "lab_not_running",
        LogsNotPermitted "logs_not_permitted",
        NoLauncher "no_launcher", NoLog "no_log", NotRunning "not_running", PoolExists "pool_exists", RecordTaken "record_taken",
        ReloadFailed "reload_failed", SpawnInProgress "spawn_in_progress", StopInProgress "stop_in_progress",
        TargetChanged "target_changed", TargetInUse "target_in_use", TargetNotReleased "target_not_released",
        UnreadableRecords "unreadable_records", VolumesInUse "volumes_in_use", WorkloadRefused "workload_refused";
    PRECONDITION_FAILED => AnotherPool "another_pool";
    PAYLOAD_TOO_LARGE => BodyTooLarge "body_too_large";
    URI_TOO_LONG => UriTooLong "uri_too_long";
    UNSUPPORTED_MEDIA_TYPE => UnsupportedMediaType "unsupported_media_type";
    UNPROCESSABLE_ENTITY =>
        AnotherLab "another_lab", IncompleteKeys "incomplete_keys", InvalidBody "invalid_body",
        InvalidCommand "invalid_command", InvalidEnv "invalid_env", InvalidName "invalid_name",
        InvalidNumber "invalid_number", InvalidOption "invalid_option", InvalidPath "invalid_path",
        InvalidPem "invalid_pem", InvalidPool "invalid_pool", InvalidProcess "invalid_process",
        InvalidRange "invalid_range", InvalidScheme "invalid_scheme", InvalidSignal "invalid_signal",
        InvalidText "invalid_text", InvalidUserString "invalid_user_string", Missing "missing",
        NotOffered "not_offered", TooLarge "too_large", UnknownField "unknown_field",
        UnknownStatus "unknown_status", WrongType "wrong_type";
    TOO_MANY_REQUESTS =>
        RetryLater "retry_later", TooManyKernelsOfUser "too_many_kernels_of_user",
        TooManyRequests "too_many_requests", TooManySpawns "too_many_spawns",
        TooManySpawnsOfUser "too_many_spawns_of_user", TooManyStreams "too_many_streams";
    REQUEST_HEADER_FIELDS_TOO_LARGE => HeadersTooLarge "headers_too_large";
    INTERNAL_SERVER_ERROR => DeleteFailed "delete_failed", InternalError "internal_error", PolicyFailed "policy_failed";
    BAD_GATEWAY => HubRefused "hub_refused";
    SERVICE_UNAVAILABLE =>
        ClusterUnavailable "cluster_unavailable", HubUnavailable "hub_unavailable",
        IdentityProviderUnavailable "identity_provider_unavailable", NotReady "not_ready",
        PoliciesMissing "policies_missing", PolicyUnavailable "policy_unavailable",
        ShuttingDown "shutting_down", TooManyLaunchers "too_many_launchers",
        UnreadableRecord "unreadable_record";
}

impl fmt::Debug for ProblemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// The page lists every kind with its status.
    #[test]
    fn the_page_has_all_kinds() {
        let page = include_str!("../README.md");
        let (_, table) = page.split_once("| status | `type` |").unwrap();
        let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
        let on_page: BTreeSet<(u16, &str)> = rows
            .flat_map(|row| {
                let (status, kinds) = row.trim_matches('|').split_once('|').unwrap();
                let status = status.trim().get(..3).unwrap().parse().unwrap();
                kinds.split('`').skip(1).step_by(2).map(move |kind| (status, kind))
            })
            .collect();
        assert_eq!(on_page, ProblemKind::all().into_iter().collect());
    }
}

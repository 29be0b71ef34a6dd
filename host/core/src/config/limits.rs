//! `limits`: how long operations may take, and how many may run at once.

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidSetting, PerUserLimits};
use crate::lifecycle::stage::StagePolicy;
use crate::lifecycle::{RestartPolicy, TimeLimits};

/// The deadline of an operation without a time limit is this far away: longer than any service runs.
const NO_LIMIT: SignedDuration = SignedDuration::from_hours(24 * 365 * 20);

/// How long operations may take, and how many may run at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsConfig {
    /// Time limit of a whole spawn; `null` for none. A policy may set another for its labs.
    #[schemars(with = "Option<String>")]
    #[serde(deserialize_with = "crate::config::span::parse_optional")]
    pub spawn: Option<SignedDuration>,
    /// Time limit of a deletion, counted from its last progress; `null` for none. A policy may set another for its labs.
    #[schemars(with = "Option<String>")]
    #[serde(deserialize_with = "crate::config::span::parse_optional")]
    pub delete: Option<SignedDuration>,
    /// Largest number of spawns at the same time. Further ones are refused with status 429.
    #[schemars(range(min = 1))]
    pub concurrent_spawns: usize,
    /// What one user may do at once.
    pub per_user: PerUserLimits,
    /// How often the service compares its state with the cluster, in case a watch has missed a change.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub reconcile_every: SignedDuration,
    /// Restarts of one container that are tolerated while a lab starts. One more counts as a crash loop and fails the
    /// spawn.
    pub restarts: u32,
    /// Restarts of a running lab's containers that are tolerated within `restart_window`. One more ends the lab.
    pub running_restarts: u32,
    /// How long a restart of a running lab's container counts towards `running_restarts`.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub restart_window: SignedDuration,
    /// A pod that still exists this long after its grace period, as on a lost node, is deleted by force. Its containers
    /// may still run there. `null`: never; the stop fails and is tried again.
    #[schemars(with = "Option<String>")]
    #[serde(deserialize_with = "crate::config::span::parse_optional")]
    pub force_delete_after: Option<SignedDuration>,
    /// How long a failed lab is listed after its objects are gone, unless it is stopped or started again before.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub failed_kept: SignedDuration,
    /// How long the service, when asked to end, continues to create labs that it has begun.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub drain: SignedDuration,
    /// Number of failed downloads of an image after which a spawn fails, unless the cause may pass by itself.
    #[schemars(range(min = 1))]
    pub image_pull_failures: u32,
    /// How long the downloads of an image may fail for a reason that may pass by itself: a limit of the registry or the
    /// kubelet, no answer, a fault of the registry, a full disk.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub image_pull_patience: SignedDuration,
    /// How long a container may fail to be configured, because a Secret it refers to may be created late.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub config_error_grace: SignedDuration,
    /// How long the history of an operation is kept after its end.
    #[schemars(with = "String")]
    #[serde(deserialize_with = "crate::config::span::parse")]
    pub history: SignedDuration,
    /// Largest number of operations in the history, of all labs together. Beyond it those that ended first are removed
    /// early. One operation takes about 5 KB, in memory and in `state_dir`.
    #[schemars(range(min = 1))]
    pub history_operations: usize,
}

impl Default for LimitsConfig {
    fn default() -> Self {
        let stages = StagePolicy::default();
        let restarts = RestartPolicy::default();
        Self {
            spawn: Some(SignedDuration::from_mins(10)),
            delete: Some(SignedDuration::from_mins(1)),
            concurrent_spawns: 1000,
            per_user: PerUserLimits::default(),
            reconcile_every: SignedDuration::from_mins(5),
            restarts: stages.restarts,
            running_restarts: restarts.allowed,
            restart_window: restarts.window,
            force_delete_after: None,
            failed_kept: SignedDuration::from_hours(24),
            drain: SignedDuration::from_secs(20),
            image_pull_failures: stages.image_pull_failures,
            image_pull_patience: stages.image_pull_patience,
            config_error_grace: stages.config_error_grace,
            history: SignedDuration::from_hours(48),
            history_operations: 20_000,
        }
    }
}

impl LimitsConfig {
    /// The time limits of a lab for which no policy sets others.
    pub fn time_limits(&self) -> TimeLimits {
        TimeLimits { spawn: self.spawn.unwrap_or(NO_LIMIT), delete: self.delete.unwrap_or(NO_LIMIT) }
    }

    /// The thresholds after which a fault that may pass counts as permanent.
    pub fn stage_policy(&self) -> StagePolicy {
        StagePolicy {
            restarts: self.restarts,
            image_pull_failures: self.image_pull_failures,
            image_pull_patience: self.image_pull_patience,
            config_error_grace: self.config_error_grace,
            ..StagePolicy::default()
        }
    }

    /// How many restarts of a running lab are tolerated.
    pub fn restart_policy(&self) -> RestartPolicy {
        RestartPolicy { allowed: self.running_restarts, window: self.restart_window }
    }

    /// A pod may need its whole grace period to end, so the time limit of a deletion has to be longer than that.
    pub(super) fn check_grace(&self, grace_seconds: u32) -> Result<(), InvalidSetting> {
        let Some(delete) =
            self.delete.filter(|delete| *delete <= SignedDuration::from_secs(grace_seconds.into()))
        else {
            return Ok(());
        };
        let problem = format!(
            "{delete:#} is not longer than lab.termination_grace_period_seconds ({grace_seconds} s), so that a stop could fail \
             while the lab is still shutting down; make it longer, or the grace period shorter"
        );
        Err(InvalidSetting::new("limits.delete", problem))
    }

    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        let day = SignedDuration::from_hours(24);
        for (key, limit) in [("limits.spawn", self.spawn), ("limits.delete", self.delete)] {
            limit.map_or(Ok(()), |limit| super::check_span(key, limit, day))?;
        }
        super::check_span("limits.reconcile_every", self.reconcile_every, day)?;
        super::check_span("limits.restart_window", self.restart_window, day)?;
        super::check_span("limits.failed_kept", self.failed_kept, day * 366)?;
        super::check_span("limits.drain", self.drain, day)?;
        super::check_span("limits.history", self.history, day * 366)?;
        if self.history_operations == 0 {
            return Err(InvalidSetting::new(
                "limits.history_operations",
                "0 keeps nothing; write at least 1",
            ));
        }
        if self.concurrent_spawns == 0 {
            return Err(InvalidSetting::new("limits.concurrent_spawns", "0 admits nobody; write at least 1"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_may_take_longer_than_a_pod_s_grace_period() {
        let limits = LimitsConfig { delete: Some(SignedDuration::from_secs(60)), ..LimitsConfig::default() };
        assert!(limits.check_grace(59).is_ok());
        let error = limits.check_grace(60).unwrap_err().to_string();
        assert!(error.starts_with("limits.delete: 1m is not longer than"), "{error}");
        assert!(LimitsConfig { delete: None, ..limits }.check_grace(60).is_ok());
    }

    #[test]
    fn time_limits_can_be_off() {
        let limits: LimitsConfig = serde_saphyr::from_str("{spawn: null, delete: null}").unwrap();
        assert!(limits.check().is_ok());
        let now: jiff::Timestamp = "2026-11-28T00:00:00Z".parse().unwrap();
        let TimeLimits { spawn, delete } = limits.time_limits();
        assert!(
            [spawn, delete]
                .into_iter()
                .all(|limit| now.checked_add(limit).is_ok_and(|at| at.to_string().as_str() > "2046"))
        );
        let refused: LimitsConfig = serde_saphyr::from_str("{spawn: 0s}").unwrap();
        assert!(refused.check().is_err());
    }
}

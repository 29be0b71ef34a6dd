//! `dask`: what the site wants of Dask pools.

use jiff::SignedDuration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{InvalidSetting, check_span};
use crate::children::dask::WorkerRange;

/// What the site wants of Dask pools. How many there may be is in `limits.per_user`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DaskConfig {
    /// True if every pool has as many workers as its scheduler needs at the moment. A pool that asks for a fixed number
    /// then has up to that number.
    pub require_adaptive: bool,
    /// After how long without work a pool ends at the latest. Clients may ask for less. The pool's own scheduler watches
    /// this, so it saves resources but does not keep back users who change their schedulers. Default: pools end with
    /// their labs.
    #[schemars(with = "Option<String>")]
    #[serde(
        deserialize_with = "crate::config::span::parse_optional",
        skip_serializing_if = "Option::is_none"
    )]
    pub longest_idle_timeout: Option<SignedDuration>,
}

impl DaskConfig {
    /// After how many seconds without work a pool ends whose client asks for `asked`.
    pub fn idle_timeout(&self, asked: Option<u32>) -> Option<u32> {
        let longest = self.longest_idle_timeout;
        let longest = longest.map(|span| u32::try_from(span.as_secs()).unwrap_or(u32::MAX).max(1));
        asked.into_iter().chain(longest).min()
    }

    /// How many workers a pool has whose client asks for `asked`.
    pub fn workers(&self, asked: WorkerRange) -> WorkerRange {
        if self.require_adaptive { asked.without_minimum() } else { asked }
    }

    pub(super) fn check(&self) -> Result<(), InvalidSetting> {
        let Some(span) = self.longest_idle_timeout else { return Ok(()) };
        check_span("dask.longest_idle_timeout", span, SignedDuration::from_hours(24 * 366))
    }
}

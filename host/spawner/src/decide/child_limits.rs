//! The site's limits on kernels and Dask pools, which apply regardless of the policies.

use wasmspawner_core::children::dask::Pool;
use wasmspawner_core::config::Config;
use wasmspawner_core::custom_resource::environment::NamespaceFate;
use wasmspawner_core::record::Place;

use crate::errors::SpawnError;
use crate::errors::denied_by::DeniedBy;

/// Refuses a child if its user already has as many of its kind as allowed.
pub(crate) fn allow_another(
    (have, allowed): (u32, u32),
    what: &str,
    remedy: &str,
    key: &str,
) -> Result<(), SpawnError> {
    if have < allowed {
        return Ok(());
    }
    let message = format!("You may have {allowed} {what} at a time and have {have}; {remedy} first");
    Err(SpawnError::denied(message, DeniedBy::configuration(key)))
}

/// Refuses a pool if its user has no room for its minimum number of workers.
pub(crate) fn allow_workers(asked: u32, (have, allowed): (u32, u32)) -> Result<(), SpawnError> {
    if have.saturating_add(asked) <= allowed {
        return Ok(());
    }
    let message = format!(
        "You may have {allowed} Dask workers at a time and have {have}, so there is no room for {asked} more; ask for \
         fewer, or close another pool first"
    );
    Err(SpawnError::denied(message, DeniedBy::configuration("limits.per_user.dask_workers")))
}

/// Adapts a pool to the rules of the site. Fails with the reason if that is not possible.
pub(crate) fn follow_rules_of_site(pool: &mut Pool, config: &Config, lab: &Place) -> Result<(), SpawnError> {
    pool.workers = config.dask.workers(pool.workers);
    for group in &mut pool.groups {
        group.workers = config.dask.workers(group.workers);
    }
    pool.idle_timeout = config.dask.idle_timeout(pool.idle_timeout);
    if !pool.outlives_lab {
        return Ok(());
    }
    if pool.idle_timeout.is_none() {
        let message =
            "a pool that goes on without its lab has to end by itself; give it an idle time-out".to_owned();
        return Err(SpawnError::InvalidPool { field: "idle_timeout", message });
    }
    let is_deleted = match lab.kind.fate() {
        Some(fate) => fate == NamespaceFate::Deleted,
        None => config.kubernetes.namespaces.is_deleted(),
    };
    if is_deleted {
        let message =
            "on this site a lab's namespace is deleted with the lab, so that no pool can go on without it"
                .to_owned();
        return Err(SpawnError::InvalidPool { field: "outlive_lab", message });
    }
    Ok(())
}

use wasmspawner_sdk::Section;
use wasmspawner_sdk::host::{ChildKind, ChildOfLab, UseOfUser};

/// The limits on the kernels and Dask pools of all labs of a user together. An absent limit means no limit.
#[derive(Clone, Copy, Default)]
pub(crate) struct ChildLimits {
    pub(crate) kernels: Option<u32>,
    pub(crate) dask_pools: Option<u32>,
    pub(crate) dask_workers: Option<u32>,
}

impl ChildLimits {
    pub(crate) fn read(entry: &mut Section<'_>) -> Self {
        Self {
            kernels: entry.optional("kernels"),
            dask_pools: entry.optional("dask_pools"),
            dask_workers: entry.optional("dask_workers"),
        }
    }

    /// The reason why a user with the use `present` may not have this child too. A pool counts with its maximum number
    /// of workers.
    pub(crate) fn refusal(&self, child: &ChildOfLab, present: &UseOfUser) -> Option<String> {
        let full = |have: u32, limit: Option<u32>, what: &str| {
            let limit = limit.filter(|limit| have >= *limit)?;
            Some(format!("You may have {limit} {what} at a time and have {have}."))
        };
        match child.kind {
            ChildKind::Kernel => full(present.kernels, self.kernels, "kernels"),
            ChildKind::DaskPool => full(present.dask_pools, self.dask_pools, "Dask pools")
                .or_else(|| self.too_many(child, present)),
        }
    }

    fn too_many(&self, pool: &ChildOfLab, present: &UseOfUser) -> Option<String> {
        let (have, asked) = (present.dask_workers, pool.workers);
        let limit = self.dask_workers.filter(|limit| have.saturating_add(asked) > *limit)?;
        let left = limit.saturating_sub(have);
        Some(format!(
            "You may have {limit} Dask workers in all your pools together, and others of yours may have {have} already. \
             This pool may have {left} at the most, not {asked}."
        ))
    }
}

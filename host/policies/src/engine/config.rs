//! The settings of the engine, which are the same where components are compiled and where they run.

use wasmtime::component::Component;
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

use crate::limits::MEMORY_SLOT;

/// How many bytes of a slot's memory stay mapped between calls. Clearing them is cheaper than page faults.
const KEEP_RESIDENT: usize = 2 << 20;
/// The most core instances of one component; a Python guest has 38.
const CORE_INSTANCES: u32 = 64;
/// The most memories of one component; a guest with an adapter has two.
const MEMORIES: u32 = 8;
/// The most tables of one component.
const TABLES: u32 = 64;

/// The settings, with room for this many calls in a pool, or without one.
pub(crate) fn config(pool: Option<u32>) -> Config {
    let mut config = Config::new();
    config
        // A policy runs for microseconds, but optimizing it can take a minute.
        .cranelift_opt_level(OptLevel::None)
        .epoch_interruption(true)
        .memory_reservation(MEMORY_SLOT as u64)
        .memory_reservation_for_growth(0)
        .generate_address_map(false);
    if let Some(slots) = pool {
        let mut pool = PoolingAllocationConfig::new();
        pool.total_component_instances(slots)
            .total_core_instances(slots * CORE_INSTANCES)
            // Each call has room for all that a component may have, so that no policy takes what is another's. It is
            // address space, and costs nothing before it is used.
            .total_memories(slots * MEMORIES)
            .total_tables(slots * TABLES)
            .total_stacks(slots)
            .max_core_instances_per_component(CORE_INSTANCES)
            .max_memories_per_component(MEMORIES)
            .max_tables_per_component(TABLES)
            .max_memory_size(MEMORY_SLOT)
            .linear_memory_keep_resident(KEEP_RESIDENT)
            .table_keep_resident(64 << 10)
            .pagemap_scan(Enabled::Auto);
        config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    }
    config
}

/// Compiles a component for the engines of this program, in this process and without limits. A component with more parts than
/// a slot of the pool has is an error.
pub(crate) fn compile(component: &[u8]) -> wasmtime::Result<Vec<u8>> {
    // Where the address space is limited, there is no pool.
    let engine = wasmtime::Engine::new(&config(Some(1))).or_else(|_| wasmtime::Engine::new(&config(None)))?;
    Component::new(&engine, component)?.serialize()
}

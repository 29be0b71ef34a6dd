//! The settings of the engine, shared by the compiler and the engine that runs components.

use wasmtime::component::Component;
use wasmtime::{Config, Enabled, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig};

use crate::limits::MEMORY_SLOT;

/// The number of bytes of a slot's memory that stay mapped between calls. Clearing them is cheaper than page faults.
const KEEP_RESIDENT: usize = 2 << 20;
/// The maximum number of core instances of one component; a Python guest has 38.
const CORE_INSTANCES: u32 = 64;
/// The maximum number of memories of one component; a guest with an adapter has two.
const MEMORIES: u32 = 8;
/// The maximum number of tables of one component.
const TABLES: u32 = 64;

/// Returns the settings: with a pool for this many calls, or without a pool.
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
            // Each call has room for the maximum of a component, so that no policy takes the share of another. The room
            // is address space, which costs nothing until it is used.
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

/// Compiles a component for the engines of this program, in this process and without limits. Fails if the component has
/// more parts than a slot of the pool.
pub(crate) fn compile(component: &[u8]) -> wasmtime::Result<Vec<u8>> {
    // Without enough address space, there is no pool.
    let engine = wasmtime::Engine::new(&config(Some(1))).or_else(|_| wasmtime::Engine::new(&config(None)))?;
    Component::new(&engine, component)?.serialize()
}

//! The engine: one configuration, in which the same component always does the same.

use wasmtime::{
    Config, Enabled, Engine, InstanceAllocationStrategy, OperatorCost, OptLevel,
    PoolingAllocationConfig, Strategy, VariableOperatorCost,
};

use crate::limit::{
    CORE_INSTANCES_MAX, FIBER_BYTES, INSTANCE_BYTES_MAX, MEMORIES_MAX, RESIDENT_BYTES,
    STACK_DEFAULT, TABLES_MAX, TABLES_PER_MEMORY, WARM_SLOTS, WasmLimits,
};

/// The fuel that a page of memory costs when it is asked for: the kernel must clear it.
const PAGE_FUEL: u8 = 64;

/// How an engine came about.
pub(crate) enum Allocation {
    /// Calls take their memory from a pool.
    Pool,
    /// Calls map their memory one by one, since the address space for a pool could not be had.
    OnDemand,
}

/// An engine that runs components, with a pool if there is room for one.
pub(crate) fn running(limits: &WasmLimits) -> Result<(Engine, Allocation), wasmtime::Error> {
    let mut config = config(limits.stack);
    let pool = InstanceAllocationStrategy::Pooling(pool(limits));
    if let Ok(engine) = Engine::new(config.allocation_strategy(pool)) {
        return Ok((engine, Allocation::Pool));
    }
    config.allocation_strategy(InstanceAllocationStrategy::OnDemand);
    Ok((Engine::new(&config)?, Allocation::OnDemand))
}

/// An engine that compiles what such an engine runs.
pub(crate) fn compiling() -> Result<Engine, wasmtime::Error> {
    Engine::new(&config(STACK_DEFAULT))
}

/// What decides the compiled code. It is the same for all engines of one build, so that what one
/// of them compiled another can run.
fn config(stack: usize) -> Config {
    let variable =
        VariableOperatorCost { memory_grow_per_page: PAGE_FUEL, ..VariableOperatorCost::new() };
    let mut config = Config::new();
    config
        .strategy(Strategy::Cranelift)
        .cranelift_opt_level(OptLevel::Speed)
        // Fuel is exact, pays for every byte of a bulk operation, and is what time is sliced by.
        .consume_fuel(true)
        // What costs no fuel takes time, too.
        .epoch_interruption(true)
        .operator_cost(OperatorCost { variable, ..OperatorCost::new() })
        // What processors may decide is decided here.
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .relaxed_simd_deterministic(true)
        .shared_memory(false)
        .wasm_memory64(false)
        .wasm_custom_page_sizes(false)
        .wasm_stack_switching(false)
        .wasm_backtrace_max_frames(None)
        .generate_address_map(false)
        .native_unwind_info(false)
        .max_wasm_stack(stack)
        .async_stack_size(FIBER_BYTES);
    config
}

fn pool(limits: &WasmLimits) -> PoolingAllocationConfig {
    let calls = limits.calls;
    // A component with all the memories that one may have must find room, however few calls run.
    let memories = calls.max(MEMORIES_MAX);
    let tables = memories.saturating_mul(TABLES_PER_MEMORY).max(TABLES_MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(calls)
        .total_core_instances(calls.saturating_mul(CORE_INSTANCES_MAX))
        .total_memories(memories)
        .total_tables(tables)
        .total_stacks(calls)
        .max_core_instances_per_component(CORE_INSTANCES_MAX)
        .max_memories_per_component(MEMORIES_MAX)
        .max_tables_per_component(TABLES_MAX)
        .max_memories_per_module(MEMORIES_MAX)
        .max_tables_per_module(TABLES_MAX)
        .max_core_instance_size(INSTANCE_BYTES_MAX)
        .max_component_instance_size(INSTANCE_BYTES_MAX)
        // One more than may be used, so that what is refused is refused by name.
        .table_elements(limits.table.saturating_add(1))
        .linear_memory_keep_resident(RESIDENT_BYTES)
        .table_keep_resident(RESIDENT_BYTES)
        .max_unused_warm_slots(WARM_SLOTS)
        // The kernel tells which pages a call changed, where it can.
        .pagemap_scan(Enabled::Auto);
    pool
}

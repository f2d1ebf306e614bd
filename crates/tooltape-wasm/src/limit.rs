//! The limits of components: each with a name and a default.

use std::time::Duration;

/// The largest component, in bytes.
pub const COMPONENT_BYTES_DEFAULT: u64 = 64 << 20;
/// The largest compiled component, in bytes.
pub const ARTIFACT_BYTES_DEFAULT: u64 = 512 << 20;
/// How long a component may take to compile; as much processor time may it use.
pub const COMPILE_WALL_DEFAULT: Duration = Duration::from_secs(120);
/// The address space that compiling a component may use, in bytes.
pub const COMPILE_MEMORY_DEFAULT: u64 = 2 << 30;
/// The fuel that a component may burn to describe itself.
pub const DESCRIBE_FUEL_DEFAULT: u64 = 100_000_000;
/// How long a component may take to describe itself.
pub const DESCRIBE_WALL_DEFAULT: Duration = Duration::from_secs(10);
/// The calls that run at the same time; more of them wait.
pub const CALLS_DEFAULT: u32 = 256;
/// The stack of a call, in bytes.
pub const STACK_DEFAULT: usize = 512 << 10;
/// The most stack that a call may have, in bytes: the host works for it on the same.
pub const STACK_MAX: usize = FIBER_BYTES / 2;
/// The elements of all tables of a call.
pub const TABLE_DEFAULT: usize = 100_000;
/// The largest result, in bytes, unless the tool says less.
pub const OUTPUT_BYTES_DEFAULT: u64 = 4 << 20;
/// How long one call to the host may take, such as for a page.
pub const HOST_WALL_DEFAULT: Duration = Duration::from_secs(30);

/// The longest that a component may ask for as its bound of time.
pub const BOUND_WALL_MAX: Duration = Duration::from_secs(3_600);
/// The most fuel that a component may ask for as its bound.
pub const BOUND_FUEL_MAX: u64 = 1_000_000_000_000;
/// The most memory that a component may ask for as its bound, in bytes.
pub const BOUND_MEMORY_MAX: u64 = 1 << 30;
/// The core instances of one component.
pub const CORE_INSTANCES_MAX: u32 = 128;
/// The memories of one component.
pub const MEMORIES_MAX: u32 = 8;
/// The tables of one component.
pub const TABLES_MAX: u32 = 64;
/// The bytes of what the engine keeps for all core instances of one call, beside their memory.
pub const INSTANCE_BYTES_MAX: usize = 4 << 20;
/// The fuel that a call to the host costs, beside one for each byte that it takes and gives.
pub const HOST_CALL_FUEL: u64 = 100;
/// The fuel after which a call lets others run.
pub const SLICE_FUEL: u64 = 200_000;
/// The time after which a call lets others run, whatever fuel it burnt.
pub const SLICE_WALL: Duration = Duration::from_millis(5);
/// The bytes of what a call logs or prints that are kept.
pub const LOG_BYTES_MAX: usize = 16 << 10;
/// The most random bytes that a component gets at once.
pub const RANDOM_BYTES_MAX: u64 = 64 << 10;
/// The handles that one call may hold.
pub const HANDLES_MAX: usize = 1_024;
/// The most bytes that a component gets of a file or a page at once.
pub const HOST_READ_BYTES_MAX: u32 = 16 << 20;
/// The most bytes that a component writes to a file at once.
pub const HOST_WRITE_BYTES_MAX: usize = 16 << 20;
/// The longest pause that a failure may ask for.
pub const RETRY_MAX: Duration = Duration::from_secs(3_600);
/// The longest code of a failure, in bytes.
pub const CODE_BYTES_MAX: usize = 64;
/// The most bytes of a failure's message that are looked at. A model reads fewer.
pub const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The longest description, in bytes.
pub const DESCRIPTION_BYTES_MAX: usize = 16 << 10;
/// The most refused imports that a message shows.
pub const IMPORTS_SHOWN_MAX: usize = 32;
/// The most rights that a component may declare.
pub const NEEDS_MAX: usize = 64;
/// The most functions of one component that become tools.
pub const FUNCTIONS_MAX: usize = 64;
/// The deepest nesting of the types of a plain function.
pub const TYPE_DEPTH_MAX: usize = 16;
/// The most types that the types of a plain function are made of.
pub const TYPES_MAX: usize = 1_024;
/// The most bytes of what a compiler or a component said that a message shows.
pub const WHY_BYTES_MAX: usize = 1_024;
/// The most compiled components that a folder keeps.
pub const CACHE_ENTRIES_MAX: usize = 256;
/// The bytes of all compiled components that a folder keeps.
pub const CACHE_BYTES_MAX: u64 = 4 << 30;

/// The bytes of a call's memory that stay mapped for the next call.
pub(crate) const RESIDENT_BYTES: usize = 512 << 10;
/// The places for memories that stay warm for the components that used them last.
pub(crate) const WARM_SLOTS: u32 = 32;
/// The tables for which there is a place beside each memory.
pub(crate) const TABLES_PER_MEMORY: u32 = 4;
/// The stack of a call and of what the host does for it, in bytes.
pub(crate) const FIBER_BYTES: usize = 2 << 20;

/// Limits of components, and of the engine that runs them.
///
/// How much fuel and memory a call may use is said by its tool, and otherwise by its run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct WasmLimits {
    /// The largest component, in bytes.
    pub component_bytes: u64,
    /// The largest compiled component, in bytes.
    pub artifact_bytes: u64,
    /// How long a component may take to compile; as much processor time may it use.
    pub compile_wall: Duration,
    /// The address space that compiling a component may use, in bytes.
    pub compile_memory: u64,
    /// The fuel that a component may burn to describe itself.
    pub describe_fuel: u64,
    /// How long a component may take to describe itself.
    pub describe_wall: Duration,
    /// The calls that run at the same time; more of them wait. At least one may run.
    pub calls: u32,
    /// The stack of a call, in bytes, of at most [`STACK_MAX`].
    pub stack: usize,
    /// The elements of all tables of a call.
    pub table: usize,
    /// The largest result, in bytes, unless the tool says less.
    pub output_bytes: u64,
    /// How long one call to the host may take, such as for a page.
    pub host_wall: Duration,
}

impl Default for WasmLimits {
    fn default() -> WasmLimits {
        WasmLimits {
            component_bytes: COMPONENT_BYTES_DEFAULT,
            artifact_bytes: ARTIFACT_BYTES_DEFAULT,
            compile_wall: COMPILE_WALL_DEFAULT,
            compile_memory: COMPILE_MEMORY_DEFAULT,
            describe_fuel: DESCRIBE_FUEL_DEFAULT,
            describe_wall: DESCRIBE_WALL_DEFAULT,
            calls: CALLS_DEFAULT,
            stack: STACK_DEFAULT,
            table: TABLE_DEFAULT,
            output_bytes: OUTPUT_BYTES_DEFAULT,
            host_wall: HOST_WALL_DEFAULT,
        }
    }
}

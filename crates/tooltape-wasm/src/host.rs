//! What stands behind one call: what it was given, how much it may use, and what it did.

use std::sync::Arc;

use tooltape::{BoundKind, Cancel, Clock, NamedStore, Progress, Random, Right};
use wasmtime::{ResourceLimiter, Store, StoreContextMut, Trap};

use crate::limit::{
    CORE_INSTANCES_MAX, HANDLES_MAX, HOST_CALL_FUEL, LOG_BYTES_MAX, MEMORIES_MAX, SLICE_FUEL,
    TABLES_MAX, WasmLimits,
};
use crate::seam::{Files, Web};

/// What stands behind one call.
pub(crate) struct Host {
    pub(crate) given: Given,
    pub(crate) meter: Meter,
    pub(crate) log: Log,
    /// Whether it asked the host to change something.
    pub(crate) wrote: bool,
    pub(crate) limits: Arc<WasmLimits>,
    /// The fuel that was left when it last let others run.
    yielded_at: u64,
}

/// What a call was given: what its component imports, and no more.
#[derive(Default)]
pub(crate) struct Given {
    pub(crate) clock: Option<Clock>,
    pub(crate) random: Option<Random>,
    pub(crate) progress: Option<Progress>,
    pub(crate) cancel: Option<Cancel>,
    pub(crate) state: Option<NamedStore>,
    pub(crate) files: Option<Arc<dyn Files>>,
    pub(crate) web: Option<Arc<dyn Web>>,
    /// The rights that the tool declares.
    pub(crate) declared: Arc<[Right]>,
}

/// How much a call may use.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Budget {
    pub(crate) fuel: u64,
    pub(crate) memory: u64,
}

impl Host {
    /// A store for one call.
    pub(crate) fn store(
        engine: &wasmtime::Engine,
        given: Given,
        budget: Budget,
        limits: &Arc<WasmLimits>,
    ) -> Result<Store<Host>, wasmtime::Error> {
        let meter = Meter::new(budget.memory, limits.table as u64);
        let (log, limits, yielded_at) = (Log::default(), limits.clone(), budget.fuel);
        let host = Host { given, meter, log, wrote: false, limits, yielded_at };
        let mut store = Store::try_new(engine, host)?;
        store.limiter(|host| &mut host.meter);
        store.set_fuel(budget.fuel)?;
        store.fuel_async_yield_interval(Some(SLICE_FUEL))?;
        // Each tick is a yield and no more: what a component does never depends on time.
        store.set_epoch_deadline(1);
        store.epoch_deadline_async_yield_and_update(1);
        store.set_max_component_handles(HANDLES_MAX);
        // The host copies no more for a component than that may have itself.
        store.set_hostcall_fuel(usize::try_from(budget.memory).unwrap_or(usize::MAX));
        Ok(store)
    }

    /// Takes the fuel for a call to the host that moves so many bytes, and lets others run if it
    /// is time for that: what a component does through the host counts like what it does itself.
    pub(crate) async fn pay(
        store: &mut StoreContextMut<'_, Host>,
        bytes: usize,
    ) -> Result<(), wasmtime::Error> {
        let cost = HOST_CALL_FUEL.saturating_add(bytes as u64);
        let fuel = store.get_fuel()?;
        let Some(left) = fuel.checked_sub(cost) else {
            store.set_fuel(0)?;
            return Err(Trap::OutOfFuel.into());
        };
        store.set_fuel(left)?;
        let host = store.data_mut();
        if host.yielded_at.saturating_sub(left) >= SLICE_FUEL {
            host.yielded_at = left;
            tokio::task::yield_now().await;
        }
        Ok(())
    }
}

impl Host {
    /// The moment of the call. A component is asked to describe itself at no time at all.
    pub(crate) fn now_us(&self) -> u64 {
        self.given.clock.as_ref().map_or(0, Clock::unix_us)
    }

    /// Bytes of the call's chance. A component that describes itself has none.
    pub(crate) fn random_bytes(&self, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        if let Some(random) = &self.given.random {
            random.fill(&mut bytes);
        }
        bytes
    }

    /// A number of the call's chance.
    pub(crate) fn random_u64(&self) -> u64 {
        self.given.random.as_ref().map_or(0, Random::next_u64)
    }
}

/// Why a call was stopped, where it was not by a trap.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Stop {
    #[error("the bound `{}` of {limit} was reached", .bound.name())]
    Exceeded { bound: BoundKind, limit: u64, used: u64 },
    #[error("it ended itself by `exit`")]
    Exit,
    #[error("it called `{0}`, and there are no files behind that: import `tooltape:tool/files`")]
    Inert(String),
}

/// Counts memory and tables.
#[derive(Debug)]
pub(crate) struct Meter {
    memory: Gauge,
    table: Gauge,
}

#[derive(Debug)]
struct Gauge {
    bound: BoundKind,
    limit: u64,
    used: u64,
}

impl Meter {
    fn new(memory: u64, table: u64) -> Meter {
        let gauge = |bound, limit| Gauge { bound, limit, used: 0 };
        Meter { memory: gauge(BoundKind::Memory, memory), table: gauge(BoundKind::Table, table) }
    }

    /// The bytes of memory that the call has.
    pub(crate) fn memory(&self) -> u64 {
        self.memory.used
    }
}

impl Gauge {
    /// Whether there may be so much more. What is beyond the bound stops the call.
    fn grow(&mut self, current: usize, desired: usize) -> Result<bool, wasmtime::Error> {
        let added = (desired as u64).saturating_sub(current as u64);
        let used = self.used.saturating_add(added);
        if used > self.limit {
            let (bound, limit) = (self.bound, self.limit);
            return Err(wasmtime::Error::new(Stop::Exceeded { bound, limit, used }));
        }
        self.used = used;
        Ok(true)
    }
}

impl ResourceLimiter for Meter {
    fn memory_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, wasmtime::Error> {
        // Beyond what it declares itself, growing fails as the standard says.
        match maximum.is_some_and(|maximum| desired > maximum) {
            true => Ok(false),
            false => self.memory.grow(current, desired),
        }
    }

    fn memory_grow_failed(&mut self, err: wasmtime::Error) -> Result<(), wasmtime::Error> {
        // How much the host has left is nothing that a component may see, and go on by.
        Err(err.context("the host has no more memory for it"))
    }

    fn table_growing(
        &mut self,
        current: usize,
        desired: usize,
        maximum: Option<usize>,
    ) -> Result<bool, wasmtime::Error> {
        // The pool's own maximum is beyond the bound, so a lower one is the component's.
        let own = maximum.filter(|maximum| *maximum as u64 <= self.table.limit);
        match own.is_some_and(|maximum| desired > maximum) {
            true => Ok(false),
            false => self.table.grow(current, desired),
        }
    }

    fn table_grow_failed(&mut self, err: wasmtime::Error) -> Result<(), wasmtime::Error> {
        Err(err.context("the host has no more room for its table"))
    }

    fn instances(&self) -> usize {
        CORE_INSTANCES_MAX as usize
    }

    fn tables(&self) -> usize {
        TABLES_MAX as usize
    }

    fn memories(&self) -> usize {
        MEMORIES_MAX as usize
    }
}

/// What a call logged or printed, as much of it as is kept.
#[derive(Default)]
pub(crate) struct Log {
    text: Vec<u8>,
    left_out: u64,
}

impl Log {
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        let room = LOG_BYTES_MAX.saturating_sub(self.text.len()).min(bytes.len());
        self.text.extend_from_slice(&bytes[..room]);
        self.left_out += (bytes.len() - room) as u64;
    }

    pub(crate) fn line(&mut self, line: &str) {
        self.add(line.as_bytes());
        self.add(b"\n");
    }

    /// What is kept, and how much is not; nothing where nothing was said.
    pub(crate) fn shown(&self) -> Option<String> {
        if self.text.is_empty() {
            return None;
        }
        let text = String::from_utf8_lossy(&self.text);
        Some(match self.left_out {
            0 => text.into_owned(),
            bytes => format!("{text} … ({bytes} bytes more)"),
        })
    }
}

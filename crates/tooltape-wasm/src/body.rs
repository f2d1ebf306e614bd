//! A loaded component: what is shared by its calls, and how one of them is begun and ends.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::{Semaphore, SemaphorePermit};
use tooltape::{BoundKind, Exceeded, Executed, ToolError};
use wasmtime::component::{Component, Instance, InstancePre, Linker};
use wasmtime::{Engine, Store, Trap};

use crate::engine::{self, Allocation};
use crate::host::{Budget, Given, Host, Stop};
use crate::imports;
use crate::limit::{MESSAGE_BYTES_MAX, STACK_MAX, TABLES_PER_MEMORY, WHY_BYTES_MAX, WasmLimits};
use crate::ticker::{Ticker, Ticking};

/// How the runtime says that a component hands over more than the host copies.
const COPIED_TOO_MUCH: &str = "fuel allocated for hostcalls has been exhausted";

/// What all components of one engine share.
pub(crate) struct Shared {
    pub(crate) engine: Engine,
    pub(crate) linker: Linker<Host>,
    pub(crate) limits: Arc<WasmLimits>,
    pub(crate) pooled: bool,
    /// The places for memories.
    seats: Semaphore,
    ticker: Ticker,
}

impl Shared {
    pub(crate) fn new(limits: WasmLimits) -> Result<Shared, wasmtime::Error> {
        let (calls, stack) = (limits.calls.max(1), limits.stack.clamp(1, STACK_MAX));
        let limits = WasmLimits { calls, stack, ..limits };
        let (engine, allocation) = engine::running(&limits)?;
        let linker = imports::linker(&engine)?;
        let seats = Semaphore::new(calls as usize);
        let ticker = Ticker::new(&engine);
        let pooled = match allocation {
            Allocation::Pool => true,
            Allocation::OnDemand => false,
        };
        Ok(Shared { engine, linker, limits: Arc::new(limits), pooled, seats, ticker })
    }
}

/// A loaded component, ready to be instantiated.
pub(crate) struct Body {
    shared: Arc<Shared>,
    pre: InstancePre<Host>,
    /// How many places a call of it takes.
    weight: u32,
}

impl Body {
    pub(crate) fn new(shared: &Arc<Shared>, pre: InstancePre<Host>) -> Body {
        let required = pre.component().resources_required();
        let weight =
            required.map_or(1, |it| it.num_memories.max(it.num_tables.div_ceil(TABLES_PER_MEMORY)));
        let weight = weight.clamp(1, shared.limits.calls);
        Body { shared: shared.clone(), pre, weight }
    }

    pub(crate) fn component(&self) -> &Component {
        self.pre.component()
    }

    pub(crate) fn limits(&self) -> &Arc<WasmLimits> {
        &self.shared.limits
    }

    /// Begins a call: with memory that nobody had before, once there is room.
    pub(crate) async fn begin(&self, given: Given, budget: Budget) -> Result<Begun<'_>, ToolError> {
        let seat = self.shared.seats.acquire_many(self.weight).await;
        let seat = seat.map_err(|err| ToolError::not_done("there is no room").because(err))?;
        let unbegun =
            |err: String| ToolError::not_done("the component could not be begun").because(err);
        let ticking = self.shared.ticker.tick().map_err(|err| unbegun(err.to_string()))?;
        let store = Host::store(&self.shared.engine, given, budget, &self.shared.limits);
        let store = store.map_err(|err| unbegun(err.to_string()))?;
        let (copied_max, body) = (budget.memory, self);
        Ok(Begun { store, budget, copied_max, body, _ticking: ticking, _seat: seat })
    }
}

/// A call that is under way. Dropping it ends it, and gives back all that it used.
pub(crate) struct Begun<'b> {
    pub(crate) store: Store<Host>,
    budget: Budget,
    /// The bytes that are named where the engine copies no more.
    copied_max: u64,
    body: &'b Body,
    _ticking: Ticking<'b>,
    // Last, since the place is free once the store is gone.
    _seat: SemaphorePermit<'b>,
}

impl Begun<'_> {
    pub(crate) async fn instance(&mut self) -> Result<Instance, wasmtime::Error> {
        self.body.pre.instantiate_async(&mut self.store).await
    }

    /// Lets the engine copy so much for each call to it or to the host. A result that is more is
    /// beyond a bound of so many bytes.
    pub(crate) fn copying(&mut self, copied: usize, output_bytes: u64) {
        self.store.set_hostcall_fuel(copied);
        self.copied_max = output_bytes;
    }

    /// The fuel that it burnt.
    fn fuel(&self) -> u64 {
        self.budget.fuel.saturating_sub(self.store.get_fuel().unwrap_or(0))
    }

    /// What only the host reads of it.
    pub(crate) fn details(&self) -> Value {
        let host = self.store.data();
        let (fuel, memory) = (self.fuel(), host.meter.memory());
        match host.log.shown() {
            Some(log) => json!({ "fuel": fuel, "memory": memory, "log": log }),
            None => json!({ "fuel": fuel, "memory": memory }),
        }
    }

    /// Whether anything happened outside of a call that did not come to its end.
    fn executed(&self) -> Executed {
        match self.store.data().wrote {
            true => Executed::Unknown,
            false => Executed::NotExecuted,
        }
    }

    /// It reached a bound.
    pub(crate) fn beyond(&self, bound: BoundKind, limit: u64, used: Option<u64>) -> ToolError {
        ToolError::beyond(Exceeded { bound, limit, used, executed: self.executed() })
    }

    /// Why it did not come to its end.
    pub(crate) fn fault(&self, err: &wasmtime::Error) -> ToolError {
        let stack = self.body.limits().stack as u64;
        let fuel = self.budget.fuel;
        match (err.downcast_ref::<Stop>(), err.downcast_ref::<Trap>()) {
            (Some(Stop::Exceeded { bound, limit, used }), _) => {
                self.beyond(*bound, *limit, Some(*used))
            }
            (Some(stop @ Stop::Exit), _) => self.stopped(&stop.to_string(), "exit"),
            (Some(stop @ Stop::Inert(_)), _) => self.stopped(&stop.to_string(), "import.inert"),
            (None, Some(Trap::OutOfFuel)) => self.beyond(BoundKind::Fuel, fuel, Some(self.fuel())),
            (None, Some(Trap::StackOverflow)) => self.beyond(BoundKind::Stack, stack, Some(stack)),
            (None, Some(trap)) => self.stopped(&trap.to_string(), "trap"),
            (None, None) if err.root_cause().to_string().ends_with(COPIED_TOO_MUCH) => {
                self.beyond(BoundKind::OutputBytes, self.copied_max, None)
            }
            (None, None) => self.stopped(&err.root_cause().to_string(), "trap"),
        }
    }

    /// It was stopped, and what it changed until then stays changed.
    fn stopped(&self, why: &str, code: &str) -> ToolError {
        let told = format!("the component was stopped: {}", shown(why));
        let err = match self.store.data().wrote {
            true => ToolError::in_doubt(told),
            false => ToolError::tell(told),
        };
        err.code(code).details(self.details())
    }
}

/// What a component tells a model, of which no more than this is looked at.
pub(crate) fn message(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MESSAGE_BYTES_MAX));
    text
}

/// What others said, as much of it as a message shows.
pub(crate) fn shown(why: &str) -> String {
    let clipped = &why[..why.floor_char_boundary(WHY_BYTES_MAX)];
    let clean: String = clipped.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    match clipped.len() < why.len() {
        true => format!("{clean} …"),
        false => clean,
    }
}

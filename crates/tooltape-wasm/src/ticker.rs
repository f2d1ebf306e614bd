//! Ticks while calls run, so that they let others run even where the host works for them.

use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use wasmtime::{Engine, EngineWeak};

use crate::limit::SLICE_WALL;

/// Advances the epoch of an engine while calls of it run. Its thread is started by the first of
/// them, rests while there are none, and ends with the ticker.
///
/// Fuel alone cannot slice time: what the engine copies between the components inside of one
/// costs none.
pub(crate) struct Ticker {
    engine: EngineWeak,
    clockwork: Arc<Clockwork>,
}

#[derive(Default)]
struct Clockwork {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    calls: usize,
    is_started: bool,
    is_over: bool,
}

/// A call that runs. Dropping it says that it has ended.
pub(crate) struct Ticking<'t>(&'t Clockwork);

impl Ticker {
    pub(crate) fn new(engine: &Engine) -> Ticker {
        Ticker { engine: engine.weak(), clockwork: Arc::default() }
    }

    /// Ticks at least until what it gives is dropped.
    pub(crate) fn tick(&self) -> io::Result<Ticking<'_>> {
        let mut state = self.clockwork.state();
        if !state.is_started {
            let (engine, clockwork) = (self.engine.clone(), self.clockwork.clone());
            let thread = thread::Builder::new().name("tooltape-wasm-tick".to_owned());
            thread.spawn(move || clockwork.run(&engine))?;
            state.is_started = true;
        }
        state.calls += 1;
        if state.calls == 1 {
            self.clockwork.changed.notify_one();
        }
        Ok(Ticking(&self.clockwork))
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.clockwork.state().is_over = true;
        self.clockwork.changed.notify_one();
    }
}

impl Drop for Ticking<'_> {
    fn drop(&mut self) {
        self.0.state().calls -= 1;
    }
}

impl Clockwork {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, engine: &EngineWeak) {
        loop {
            let resting = |state: &mut State| state.calls == 0 && !state.is_over;
            let state = self.changed.wait_while(self.state(), resting);
            if state.unwrap_or_else(PoisonError::into_inner).is_over {
                return;
            }
            thread::sleep(SLICE_WALL);
            match engine.upgrade() {
                Some(engine) => engine.increment_epoch(),
                None => return,
            }
        }
    }
}

//! What the runtime takes from std to share state by, scheduled by the model checker.
#![forbid(unsafe_code)]

use shuttle::sync::atomic::{AtomicBool, Ordering};
pub use shuttle::thread_local;

/// Lets the model checker run anybody else here.
pub fn switch() {
    AtomicBool::new(false).load(Ordering::SeqCst);
}

/// The locks and counters.
pub mod sync {
    pub use shuttle::sync::{Mutex, MutexGuard, atomic};
    use std::sync::PoisonError;

    /// A value that is set once. While somebody makes it, others wait as the checker decides.
    #[derive(Debug)]
    pub struct OnceLock<T> {
        value: std::sync::OnceLock<T>,
        making: Mutex<()>,
    }

    impl<T> OnceLock<T> {
        /// Not set.
        pub const fn new() -> OnceLock<T> {
            OnceLock { value: std::sync::OnceLock::new(), making: Mutex::new(()) }
        }

        /// The value, if it is set.
        pub fn get(&self) -> Option<&T> {
            super::switch();
            self.value.get()
        }

        /// Sets the value, unless it is set.
        pub fn set(&self, value: T) -> Result<(), T> {
            let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            self.value.set(value)
        }

        /// The value, which is made here unless it is set.
        pub fn get_or_init(&self, make: impl FnOnce() -> T) -> &T {
            if let Some(value) = self.get() {
                return value;
            }
            let _making = self.making.lock().unwrap_or_else(PoisonError::into_inner);
            // Nobody else sets it, so nobody waits inside.
            match self.value.get() {
                Some(value) => value,
                None => {
                    let value = make();
                    self.value.get_or_init(|| value)
                }
            }
        }

        /// Takes the value out.
        pub fn take(&mut self) -> Option<T> {
            self.value.take()
        }
    }

    impl<T> Default for OnceLock<T> {
        fn default() -> OnceLock<T> {
            OnceLock::new()
        }
    }
}

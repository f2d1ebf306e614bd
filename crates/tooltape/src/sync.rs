//! What threads share state by; in `tests/model`, the same of a model checker.

#[cfg(not(tooltape_model))]
pub(crate) use std::{
    sync::{Mutex, MutexGuard, OnceLock, atomic},
    thread_local,
};

#[cfg(tooltape_model)]
pub(crate) use model_std::{
    sync::{Mutex, MutexGuard, OnceLock, atomic},
    thread_local,
};

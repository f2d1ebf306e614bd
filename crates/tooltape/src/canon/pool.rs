//! Memory that a thread keeps from one document for the next.

use std::cell::Cell;
use std::thread::LocalKey;

/// What a thread keeps of one type: one item, which is all that most threads ever use at a time.
pub(super) type Pool<T> = Cell<Option<T>>;

/// The kept item, or a new one.
pub(super) fn take<T: Default>(pool: &'static LocalKey<Pool<T>>) -> T {
    pool.try_with(Cell::take).ok().flatten().unwrap_or_default()
}

/// Keeps an item, emptied, for the next time.
pub(super) fn keep<T>(pool: &'static LocalKey<Pool<T>>, item: T) {
    // A thread that is ending has nowhere to keep it; then it is simply freed.
    let _ = pool.try_with(|pool| pool.set(Some(item)));
}

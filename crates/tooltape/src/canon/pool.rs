//! Memory that a thread keeps from one document for the next.

use std::cell::RefCell;
use std::thread::LocalKey;

/// The most items that a thread keeps of one type.
const KEPT_MAX: usize = 2;

/// The items that a thread keeps.
pub(super) type Pool<T> = RefCell<Vec<T>>;

/// A kept item, or a new one.
pub(super) fn take<T: Default>(pool: &'static LocalKey<Pool<T>>) -> T {
    pool.try_with(|pool| pool.borrow_mut().pop()).ok().flatten().unwrap_or_default()
}

/// Keeps an item, emptied, for the next time.
pub(super) fn keep<T>(pool: &'static LocalKey<Pool<T>>, item: T) {
    // A thread that is ending has nowhere to keep it; then it is simply freed.
    let _ = pool.try_with(|pool| {
        let mut pool = pool.borrow_mut();
        if pool.len() < KEPT_MAX {
            pool.push(item);
        }
    });
}

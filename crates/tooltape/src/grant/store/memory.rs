//! Values in memory.

use std::collections::HashMap;
use std::sync::PoisonError;

use super::{Place, STORE_VALUES_MAX};
use crate::canon::Canon;
use crate::fault::ToolError;
use crate::sync::Mutex;

#[derive(Default)]
pub(super) struct Memory(Mutex<HashMap<Place, Canon>>);

impl Memory {
    pub(super) fn get(
        &self,
        at: &Place,
        noted: impl FnOnce(&Option<Canon>) -> Result<(), ToolError>,
    ) -> Result<Option<Canon>, ToolError> {
        let values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = values.get(at).cloned();
        noted(&found)?;
        Ok(found)
    }

    /// What a tape says was the last value; what is here already is later still.
    pub(super) fn restore(&self, at: Place, value: &Canon) {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.entry(at).or_insert_with(|| value.clone());
    }

    pub(super) fn put(
        &self,
        at: &Place,
        value: Option<&Canon>,
        noted: impl FnOnce() -> Result<(), ToolError>,
    ) -> Result<(), ToolError> {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if value.is_some() && values.len() >= STORE_VALUES_MAX && !values.contains_key(at) {
            let why = format!("the store has {STORE_VALUES_MAX} values, and may have no more");
            return Err(ToolError::not_done(why).code("store.full"));
        }
        noted()?;
        match value {
            Some(value) => drop(values.insert(at.clone(), value.clone())),
            None => drop(values.remove(at)),
        }
        Ok(())
    }
}

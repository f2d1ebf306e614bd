//! agnt-core: a registry that is searched one by one, synchronous, without a schema check.

use agnt_core::{Registry, Tool};
use serde_json::{Value, json};
use tooltape_board::{Add, add};

use super::{DESCRIPTION, TOOLS};

pub(crate) struct Agnt(Registry);

struct Adder(String);

impl Tool for Adder {
    fn name(&self) -> &str {
        &self.0
    }

    fn description(&self) -> &str {
        DESCRIPTION
    }

    fn schema(&self) -> Value {
        json!({ "type": "object" })
    }

    fn call(&self, args: Value) -> Result<String, String> {
        let args: Add = serde_json::from_value(args).map_err(|err| err.to_string())?;
        serde_json::to_string(&add(&args)).map_err(|err| err.to_string())
    }
}

impl Agnt {
    pub(crate) fn new() -> Agnt {
        let mut registry = Registry::new();
        for at in 0..TOOLS {
            let name = if at == TOOLS / 2 { "add".to_owned() } else { format!("add_{at}") };
            registry.register(Box::new(Adder(name)));
        }
        Agnt(registry)
    }

    pub(crate) fn call(&self, text: &str) -> String {
        let args = serde_json::from_str(text).expect("the arguments are JSON");
        self.0.dispatch("add", args).expect("the tool succeeds")
    }
}

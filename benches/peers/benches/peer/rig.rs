//! rig-core: a typed tool behind its erased handler, without a schema check.

use std::convert::Infallible;

use rig_core::effect::{EffectKind, Outcome};
use rig_core::serve::adapters::ToolAdapter;
use rig_core::serve::{ErasedHandler, serve_inline};
use rig_core::tool::{Tool, ToolContext};
use serde_json::{Value, json};
use tooltape_board::{Add, add};

use super::DESCRIPTION;

pub(crate) struct Rig(ErasedHandler);

struct Adder;

impl Tool for Adder {
    const NAME: &'static str = "add";
    type Args = Add;
    type Output = i64;
    type Error = Infallible;

    fn description(&self) -> String {
        DESCRIPTION.to_owned()
    }

    fn parameters(&self) -> Value {
        json!({ "type": "object" })
    }

    async fn call(&self, _: &mut ToolContext, args: Add) -> Result<i64, Infallible> {
        Ok(add(&args))
    }
}

impl Rig {
    pub(crate) fn new() -> Rig {
        Rig(ErasedHandler::new(ToolAdapter::new(Adder)))
    }

    pub(crate) async fn call(&self, text: &str) -> Outcome {
        let call = EffectKind::ToolCall { name: "add".to_owned(), args: text.to_owned() };
        serve_inline(&self.0, call).await.expect("the tool succeeds")
    }
}

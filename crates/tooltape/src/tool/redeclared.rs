//! A tool of which its host says something else than it says of itself.

use std::sync::Arc;

use super::{Args, BoxFuture, Output, Tool};
use crate::fault::ToolError;
use crate::grant::Grants;
use crate::spec::Spec;

pub(super) struct Redeclared {
    tool: Arc<dyn Tool>,
    spec: Spec,
}

impl Redeclared {
    pub(super) fn new(tool: Arc<dyn Tool>, change: impl FnOnce(&mut Spec)) -> Redeclared {
        let mut spec = tool.spec().clone();
        change(&mut spec);
        Redeclared { tool, spec }
    }
}

impl Tool for Redeclared {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        self.tool.call(args, grants)
    }
}

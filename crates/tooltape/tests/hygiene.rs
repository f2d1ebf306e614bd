//! A crate of its own, in which no name means what an expansion might hope it means.
#![deny(warnings, missing_docs, unreachable_pub, unused_qualifications)]

// `::serde`, `::schemars` and `::serde_json` are this crate, and hold nothing.
extern crate self as schemars;
extern crate self as serde;
extern crate self as serde_json;

/// They are here to be in the way.
mod decoys {
    #![allow(dead_code, unused_macros, reason = "nobody must use them")]

    pub(crate) struct Arc;
    pub(crate) struct Box;
    pub(crate) struct Err;
    pub(crate) struct Ok;
    pub(crate) struct Option;
    pub(crate) struct Spec;
    pub(crate) struct Vec;
    pub(crate) mod core {}
    pub(crate) mod std {}
    pub(crate) mod tooltape {}
    pub(crate) trait Tool {}

    macro_rules! trap {
        ($($any:tt)*) => {
            compile_error!("not this one")
        };
    }
    pub(crate) use {trap as assert, trap as concat, trap as vec};
}

mod tools {
    #[allow(unused_imports, reason = "they are in the way")]
    use crate::decoys::{Arc, Box, Err, Ok, Option, Spec, Tool, Vec, core, std};
    #[allow(unused_imports, reason = "they are in the way")]
    use crate::decoys::{assert, concat, vec};
    use ::tooltape::{Clock, Input, Secret, State, ToolError, input, tool};

    /// How to sort.
    #[input]
    #[derive(Clone, Copy, Debug, PartialEq)]
    pub(crate) enum Order {
        Ascending,
        Descending,
    }

    /// What to look up.
    #[input(check)]
    #[derive(Debug)]
    #[serde(rename_all = "camelCase")]
    pub(crate) struct Lookup {
        /// The key.
        #[schemars(length(min = 1))]
        the_key: String,
        order: ::std::option::Option<Order>,
        inside: ::std::option::Option<::std::boxed::Box<Self>>,
    }

    impl Lookup {
        fn check(&self) -> Result<(), String> {
            let _ = (self.order, &self.inside);
            Result::Ok(())
        }
    }

    /// Looks up. Its name, and those of its parameters, are locals of the expansion.
    #[tool(
        Read, version = "1.2.3", determinism = Bounded, needs("fs:read:."), wall_ms = 10,
        memory = unlimited, workspace_root = "a", dedupe_by = "theKey", attempts = 2
    )]
    pub(crate) async fn spec(
        args: Lookup,
        grants: Clock,
        needs: Secret<String>,
        input: State<u8>,
    ) -> Result<String, ToolError> {
        let _ = (grants, needs, input);
        Result::Ok(args.the_key)
    }

    /// Waits. Its name is a keyword.
    #[tool(Pure, blocking)]
    pub(crate) fn r#loop(_: Lookup, _: Clock) -> Result<u8, String> {
        Result::Ok(0)
    }

    /// Takes any input at all.
    #[tool(Pure)]
    pub(crate) async fn generic<I: Input>(_: I) -> Result<&'static str, ToolError> {
        Result::Ok("generic")
    }
}

#[test]
fn an_expansion_needs_no_crate_but_ours_and_no_name_in_scope() {
    let named = tooltape::tools![tools::spec, tools::r#loop, tools::generic<tools::Lookup>];
    assert_eq!(named.each_ref().map(|tool| &*tool.spec().name), ["spec", "loop", "generic"]);
}

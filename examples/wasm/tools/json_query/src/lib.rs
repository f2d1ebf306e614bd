//! Finds values in a JSON document, in one pass over it.
//!
//! A query is a JSON Pointer that may branch, each step of it with filters:
//!
//! ```text
//! /store/books/0/title            a JSON Pointer, with ~0 for ~ and ~1 for /
//! /store/"a name with / in it"    a name as a JSON string
//! /store/books/*/title            each member or element
//! /**/price                       any number of levels
//! /store/books/*[/price<10]       those whose price is less than 10
//! /**[="Emma"]                    every value that is this string
//! /**[/isbn][/price>=8.5]         what has a number, and costs at least that
//! ```
//!
//! A comparison is `=`, `!=`, `<`, `<=`, `>` or `>=` with a string, a number, `true`, `false` or
//! `null`. Values of different types are different and have no order, and what is not there
//! satisfies no comparison.
//!
//! The work is at most the size of the document times that of the query, whatever both are: all
//! ways to read a query go down together, so no value is visited twice.

mod query;
mod search;
#[cfg(target_family = "wasm")]
mod component;

pub use query::{Query, QueryError};
pub use search::{Answer, Match, search};

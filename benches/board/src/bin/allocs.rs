//! Counts what a call allocates, apart from the board because counting slows everything down.

use std::alloc::System;
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::{Map, Value, json};
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use tooltape::{
    Access, Args, BoxFuture, Checker, Grants, Output, Proposal, Spec, Tool, ToolError, Toolbox,
};
use tooltape_board::{ADD_TEXT, Subject, add, direct, median};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

fn main() -> ExitCode {
    match std::env::args().nth(1).as_deref() {
        Some("dispatch.allocs") => dispatch(),
        Some("schema.compiles") => compiles(),
        _ => {
            eprintln!("usage: allocs dispatch.allocs | schema.compiles");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// `dispatch.allocs`: the median of many calls, since a tape that grows allocates now and then.
fn dispatch() {
    let subject = Subject::adding_among(10);
    let direct = count(|| drop(direct(ADD_TEXT)));
    let calls = calls(&subject);
    println!("{}", median(calls.iter().copied()));
    println!("direct: from_str, add, to_string {direct:>18} allocations");
    println!("tooltape: the whole path, median {:>18} allocations", median(calls.iter().copied()));
    let mean = calls.iter().sum::<f64>() / calls.len() as f64;
    println!("tooltape: the whole path, mean {mean:>20.2} allocations");
}

/// `schema.compiles`: what a call allocates more for a large schema, in compilations of it.
fn compiles() {
    let [small, large] = [0, 200].map(|others| adder_schema(others));
    let compiling = count(|| drop(Checker::compile_input(&large)));
    let calls = [&small, &large].map(|schema| median(calls(&adding_by(schema))));
    println!("{}", (calls[1] - calls[0]) / compiling);
    println!("tooltape: a call, small schema {:>20} allocations", calls[0]);
    println!("tooltape: a call, large schema {:>20} allocations", calls[1]);
    println!("tooltape: compiling the large schema {compiling:>14} allocations");
}

/// What each of many calls allocates.
fn calls(subject: &Subject) -> Vec<f64> {
    let run = subject.opened();
    (0..1_000).map(|_| count(|| subject.call(&run))).collect()
}

fn count(work: impl FnOnce()) -> f64 {
    let region = Region::new(ALLOCATOR);
    work();
    let change = region.change();
    (change.allocations + change.reallocations) as f64
}

fn adding_by(schema: &Value) -> Subject {
    let spec = Spec::new("add", "Adds two numbers.").access(Access::Pure).input(schema.clone());
    let toolbox = Toolbox::new([Arc::new(Adder(spec)) as _]).expect("the tool is admitted");
    Subject::new(toolbox, Proposal::new("call_1", "add", ADD_TEXT))
}

/// Takes two numbers, and so many other arguments that nobody sends.
fn adder_schema(others: usize) -> Value {
    let property = |at| (format!("other_{at}"), json!({ "type": "string", "maxLength": at }));
    let mut properties: Map<_, _> = (0..others).map(property).collect();
    properties.extend(["a", "b"].map(|name| (name.to_owned(), json!({ "type": "integer" }))));
    json!({
        "type": "object",
        "properties": properties,
        "required": ["a", "b"],
        "additionalProperties": false,
    })
}

struct Adder(Spec);

impl Tool for Adder {
    fn spec(&self) -> &Spec {
        &self.0
    }

    fn call<'a>(&'a self, args: Args, _: &'a Grants) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async { Output::value(&add(&args.parse()?)) })
    }
}

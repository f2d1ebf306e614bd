//! Every limit of components is in the table of `docs/wasm-limits.md`, with its value.

use expect_test::expect_file;
use tooltape_wasm::limits::*;

/// Rows: `NAME: "of what"`.
macro_rules! rows {
    ($($name:ident: $what:literal,)*) => {
        [$((stringify!($name), format!("{:?}", $name), $what)),*]
    };
}

#[test]
fn every_limit_of_components_is_in_the_table_with_its_value() {
    let rows = [of_calls(), of_loading()].concat();
    let mut page = String::from(
        "# Limits of components\n\nWASM components have these limits besides those of \
         [every call](limits.md), where the defaults of fuel, memory and time stand. A test holds \
         this table to the code.\n\n| limit | value | of what |\n|---|---|---|\n",
    );
    for (name, value, what) in &rows {
        page.push_str(&format!("| `{name}` | {value} | {what} |\n"));
    }
    expect_file!["../../../../docs/wasm-limits.md"].assert_eq(&page);
    let source = include_str!("../../src/lib.rs");
    let (_, limits) = source.split_once("pub mod limits {").unwrap();
    let (limits, _) = limits.split_once("\n}\n").unwrap();
    let words = limits.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_limit = |word: &&str| word.len() > 3 && word.chars().all(|c| !c.is_ascii_lowercase());
    for word in words.filter(is_limit) {
        assert!(rows.iter().any(|(name, ..)| *name == word), "`{word}` is not in the table");
    }
}

/// The limits of calls.
fn of_calls() -> Vec<(&'static str, String, &'static str)> {
    rows![
        BOUND_FUEL_MAX: "fuel that a component may ask for as its bound",
        BOUND_MEMORY_MAX: "bytes of memory that a component may ask for as its bound",
        BOUND_WALL_MAX: "time that a component may ask for as its bound",
        CALLS_DEFAULT: "calls that run at the same time; more wait",
        CODE_BYTES_MAX: "bytes of a failure's code",
        CORE_INSTANCES_MAX: "core instances of a component",
        HANDLES_MAX: "handles that a call may hold",
        HOST_CALL_FUEL: "fuel of a call to the host, beside one for each byte",
        HOST_READ_BYTES_MAX: "bytes of a file or a page that a component gets at once",
        HOST_WALL_DEFAULT: "time of a call to the host",
        HOST_WRITE_BYTES_MAX: "bytes that a component writes to a file at once",
        INSTANCE_BYTES_MAX: "bytes that the engine keeps for a call beside its memory",
        LOG_BYTES_MAX: "bytes of what a call logs that are kept",
        MEMORIES_MAX: "memories of a component",
        MESSAGE_BYTES_MAX: "bytes of a failure's message that are looked at",
        OUTPUT_BYTES_DEFAULT: "bytes of a result, unless the tool says less",
        RANDOM_BYTES_MAX: "random bytes that a component gets at once",
        RETRY_MAX: "pause that a failure may ask for",
        SLICE_FUEL: "fuel after which a call lets others run",
        SLICE_WALL: "time after which a call lets others run, whatever fuel it burnt",
        STACK_DEFAULT: "bytes of a call's stack",
        STACK_MAX: "bytes of a call's stack that a host may allow",
        TABLES_MAX: "tables of a component",
        TABLE_DEFAULT: "elements of all tables of a call",
    ]
    .to_vec()
}

/// The limits of loading.
fn of_loading() -> Vec<(&'static str, String, &'static str)> {
    rows![
        ARTIFACT_BYTES_DEFAULT: "bytes of a compiled component",
        CACHE_BYTES_MAX: "bytes of all compiled components that a folder keeps",
        CACHE_ENTRIES_MAX: "compiled components that a folder keeps",
        COMPILE_MEMORY_DEFAULT: "bytes of address space to compile a component",
        COMPILE_WALL_DEFAULT: "time, and processor time, to compile a component",
        COMPONENT_BYTES_DEFAULT: "bytes of a component",
        DESCRIBE_FUEL_DEFAULT: "fuel for a component to describe itself",
        DESCRIBE_WALL_DEFAULT: "time for a component to describe itself",
        DESCRIPTION_BYTES_MAX: "bytes of a description",
        FUNCTIONS_MAX: "functions of a component that become tools",
        IMPORTS_SHOWN_MAX: "refused imports that a message shows",
        NEEDS_MAX: "rights that a component may declare",
        TYPES_MAX: "types that the types of a function are made of",
        TYPE_DEPTH_MAX: "nesting of the types of a function",
        WHY_BYTES_MAX: "bytes of what a compiler or a component said that a message shows",
    ]
    .to_vec()
}

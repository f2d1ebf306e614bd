//! What a large output costs the process, in a process where nothing else happens.
#![allow(clippy::unwrap_used, reason = "a test fails where it stands")]
#![allow(clippy::print_stdout, reason = "it says what it measured")]

use std::fs;

use tooltape::limits::OUTPUT_BYTES_DEFAULT;
use tooltape::{Artifacts, Output, Proposal, Run, ToolError, Toolbox, input, tool, tools};

/// The bytes of the output.
const OUTPUT_BYTES: usize = 50_000_000;
/// What the process may use besides, such as for escapes and threads.
const BESIDES_BYTES: usize = 1_000_000;

#[input]
struct Wanted {
    bytes: usize,
}

/// Lines of 100 characters, as logs have them.
fn log(bytes: usize) -> String {
    let line = format!("2026-01-01T00:00:00Z INFO {}\n", "x".repeat(73));
    line.repeat(bytes / line.len())
}

/// Returns a text.
#[tool(Read)]
async fn text(args: Wanted) -> Result<String, ToolError> {
    Ok(log(args.bytes))
}

/// Returns an output that is a text.
#[tool(Read)]
async fn output(args: Wanted) -> Result<Output, ToolError> {
    Ok(Output::text(log(args.bytes)))
}

/// Returns content, and no value.
#[tool(Read)]
async fn content(args: Wanted) -> Result<Output, ToolError> {
    Ok(Output::of(tooltape::Block::text(log(args.bytes))))
}

/// Returns rows.
#[tool(Read)]
async fn rows(args: Wanted) -> Result<Vec<u64>, ToolError> {
    // Nineteen digits and a comma each.
    Ok((0..).take(args.bytes / 20).map(|row| 9_000_000_000_000_000_000 + row).collect())
}

#[test]
fn a_large_output_costs_the_model_its_bound_and_the_process_twice_the_output() {
    let Some(_) = peak() else {
        println!("the system does not say what a process uses; nothing was measured");
        return;
    };
    let folder = tempfile::TempDir::new().unwrap();
    for name in ["text", "output", "content", "rows"] {
        for artifacts in [Artifacts::memory(), Artifacts::in_dir(folder.path()).unwrap()] {
            let shown = format!("{name} with {artifacts:?}");
            // What is needed once is not what an output costs.
            call(name, artifacts.clone(), 100_000);
            let used = used_by(|| call(name, artifacts, OUTPUT_BYTES));
            println!("{shown}: {:.2} times the output", used as f64 / OUTPUT_BYTES as f64);
            assert!(used <= 2 * OUTPUT_BYTES + BESIDES_BYTES, "{shown} used {used} bytes");
        }
    }
}

/// Calls a tool that returns so many bytes.
fn call(name: &str, artifacts: Artifacts, bytes: usize) {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    let toolbox = Toolbox::new(tools![text, output, content, rows]).unwrap();
    let run = Run::new(&toolbox).grant(artifacts);
    let proposal = Proposal::new("c1", name, format!(r#"{{"bytes":{bytes}}}"#));
    let replies = runtime.block_on(run.batch(vec![proposal])).unwrap();
    assert!(replies[0].text().len() as u64 <= OUTPUT_BYTES_DEFAULT);
    assert_eq!(replies[0].artifacts.len(), 1, "{}", replies[0].text());
}

/// The most memory that the process uses during some work, beyond what it used before.
fn used_by(work: impl FnOnce()) -> usize {
    // Linux forgets the highest mark when it is told this number.
    fs::write("/proc/self/clear_refs", "5").unwrap();
    let before = peak().unwrap();
    work();
    peak().unwrap() - before
}

/// The most memory that the process has used, where the system says so.
fn peak() -> Option<usize> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: usize = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    Some(kilobytes * 1_024)
}

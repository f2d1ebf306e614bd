//! What a WASM component costs as a tool: its calls, its loading, and the memory that it waits in.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Instant;

use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tooltape::{Access, Proposal, Spec, Tool, ToolError, Toolbox, input, tool_fn};
use tooltape_wasm::{Compiler, Component, Wasm, WasmLimits};

use crate::race::{Effort, Measured, Racer, median, race};
use crate::subject::Subject;

/// The calls that are made at once.
const CROWD: usize = 1_000;
/// How many components wait, to see how much memory one takes.
const WAITING: usize = 64;
/// How often a component is loaded each way.
const LOADS: usize = 15;
/// What is counted in each call.
const TEXT: &str = "to be or not to be, that is the question";

/// `wasm.call`: a fresh, metered instance and all of a call, beside a process and a native tool.
pub fn call(effort: Effort) -> Measured {
    let component = loaded(&runtime(), &wasm(), "word_count");
    let mut toolbox = Toolbox::new([counting()]).expect("the tool has a name");
    component.register(&mut toolbox).expect("the component is a tool");
    let subject = |name: &str| {
        let args = json!({ "text": TEXT }).to_string();
        Subject::new(toolbox.clone(), Proposal::new("c", name, args))
    };
    let (native, metered) = (subject("count"), subject("word_count"));
    let lanes = race(
        effort,
        [
            Racer::timed("native: the whole call", |times| native.calls(times)),
            Racer::timed("wasm: the whole call", |times| metered.calls(times)),
            // Its time is the time that passes: a process is none of this one's.
            Racer::timed("process: /bin/true", |times| {
                let begun = Instant::now();
                (0..times).for_each(|_| {
                    let status = Command::new("/bin/true").status().expect("it is there");
                    assert!(status.success());
                });
                begun.elapsed()
            }),
        ],
    );
    let crowd = CROWD / effort.shrink;
    let micros = metered.batch(crowd).as_secs_f64() * 1e6 / crowd as f64;
    let mut measured = Measured::of(lanes[2].nanos / lanes[1].nanos, &lanes);
    let what = format!("wasm: each of {crowd} calls at once");
    measured.rows.push(format!("{what:<44} {micros:>12.2} µs"));
    measured
}

/// `wasm.load`: a component from the cache, beside compiling it.
pub fn load(effort: Effort) -> Measured {
    let runtime = runtime();
    let folder = tempfile::tempdir().expect("a folder for a while");
    let cached = wasm().caching(folder.path().join("cache")).expect("the folder takes files");
    loaded(&runtime, &cached, "json_query");
    let bare = wasm();
    let (mut compiled, mut kept) = (Vec::new(), Vec::new());
    for _ in 0..LOADS.min(effort.rounds) {
        compiled.push(millis(|| drop(black_box(loaded(&runtime, &bare, "json_query")))));
        kept.push(millis(|| {
            let component = black_box(loaded(&runtime, &cached, "json_query"));
            assert!(component.is_from_cache());
        }));
    }
    let (compiled, kept) = (median(compiled), median(kept));
    let row = |what: &str, millis: f64| format!("{what:<44} {millis:>12.3} ms");
    let rows = vec![row("compiled, looked at, asked to describe", compiled), row("cached", kept)];
    Measured { value: compiled / kept, rows }
}

/// `wasm.idle`: the memory of a component that waits for calls, in KiB.
pub fn idle(effort: Effort) -> Measured {
    let runtime = runtime();
    let wasm = wasm();
    let bytes = fs::read(path("word_count")).expect("the example is built");
    let mut waiting = vec![read(&runtime, &wasm, &bytes, 0)];
    let before = resident();
    let count = WAITING.div_ceil(effort.shrink);
    waiting.extend((1..=count).map(|no| read(&runtime, &wasm, &bytes, no)));
    let kib = resident().saturating_sub(before) as f64 / count as f64;
    let rows = vec![format!("{:<44} {:>12} B", "the component itself", bytes.len())];
    Measured { value: kib, rows }
}

/// The same component under another hash: one with a section of its own at its end.
fn read(runtime: &Runtime, wasm: &Wasm, bytes: &[u8], no: usize) -> Component {
    let name = format!("n{no:06}");
    let mut bytes = bytes.to_vec();
    // A custom section: its id, its size, the size of its name, its name.
    bytes.extend([0, 8, 7]);
    bytes.extend(name.as_bytes());
    runtime.block_on(wasm.read(&name, &bytes)).expect("the component is one")
}

/// What this process has in memory, in KiB.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux says so");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let word = line.and_then(|line| line.split_whitespace().next());
    word.and_then(|word| word.parse().ok()).expect("it is a number")
}

fn wasm() -> Wasm {
    Wasm::new(Compiler::InProcess, WasmLimits::default()).expect("there is an engine")
}

fn path(name: &str) -> PathBuf {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/wasm");
    PathBuf::from(folder).join(format!("{name}.wasm"))
}

fn loaded(runtime: &Runtime, wasm: &Wasm, name: &str) -> Component {
    runtime.block_on(wasm.load(path(name))).expect("the example is a component")
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime")
}

/// The same tool, in this program.
fn counting() -> Arc<dyn Tool> {
    let spec = Spec::new("count", "Counts words.").access(Access::Pure);
    tool_fn(spec, async |args: Text| Ok::<_, ToolError>(args.text.split_whitespace().count()))
}

#[input]
struct Text {
    text: String,
}

fn millis(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    begun.elapsed().as_secs_f64() * 1e3
}

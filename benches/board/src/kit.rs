//! What the tools for files cost beside the programs and calls that do the same.

use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use std::{env, fs};

use grep_regex::RegexMatcher;
use grep_searcher::Searcher;
use grep_searcher::sinks::Lossy;
use ignore::overrides::OverrideBuilder;
use ignore::{WalkBuilder, WalkState};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tooltape::{Proposal, Run, Toolbox};
use tooltape_kit::Workspace;

use crate::race::{Effort, Measured, Racer, race};

/// What is searched for.
const PATTERN: &str = r"fn \w+_mut\(&mut self";
/// How many files are searched.
const FILES: usize = 6_000;
/// The rounds of a race that takes many milliseconds a turn.
const ROUNDS: usize = 15;
/// The bytes of the file that is read.
const READ_BYTES: usize = 60_000;

/// `kit.grep`: real sources searched for a pattern, by the tool and by ripgrep's own program, in
/// time that passes. The program begins anew each time, as an agent would have it.
pub fn grep(effort: Effort) -> Measured {
    let args = json!({ "pattern": PATTERN, "show": "counts", "limit": 2_000 });
    search(effort, "grep", &args, &["-c", PATTERN], grep_directly)
}

/// `kit.glob`: real sources listed by name, by the tool and by ripgrep's own program.
pub fn glob(effort: Effort) -> Measured {
    let args = json!({ "pattern": "*.rs", "limit": 10_000 });
    search(effort, "glob", &args, &["--files", "-g", "*.rs"], glob_directly)
}

/// How many files below a folder have a line that fits, by ripgrep's libraries alone.
fn grep_directly(folder: &Path) -> usize {
    let matcher = RegexMatcher::new(PATTERN).expect("the pattern is one");
    let found = AtomicUsize::new(0);
    walk(folder).build_parallel().run(|| {
        let (mut searcher, matcher, found) = (Searcher::new(), matcher.clone(), &found);
        Box::new(move |entry| {
            let Ok(entry) = entry else { return WalkState::Continue };
            if entry.file_type().is_some_and(|kind| kind.is_file()) {
                let mut lines = 0_u64;
                let count = Lossy(|_, _| {
                    lines += 1;
                    Ok(true)
                });
                searcher.search_path(&matcher, entry.path(), count).expect("the file is there");
                found.fetch_add(usize::from(lines > 0), Ordering::Relaxed);
            }
            WalkState::Continue
        })
    });
    found.into_inner()
}

/// How many files below a folder have a fitting name, by ripgrep's libraries alone.
fn glob_directly(folder: &Path) -> usize {
    let mut names = OverrideBuilder::new(folder);
    let names = names.add("*.rs").and_then(|names| names.build()).expect("the glob is one");
    let found = AtomicUsize::new(0);
    walk(folder).overrides(names).build_parallel().run(|| {
        let found = &found;
        Box::new(move |entry| {
            let is_file = entry.is_ok_and(|it| it.file_type().is_some_and(|kind| kind.is_file()));
            found.fetch_add(usize::from(is_file), Ordering::Relaxed);
            WalkState::Continue
        })
    });
    found.into_inner()
}

fn walk(folder: &Path) -> WalkBuilder {
    let mut walk = WalkBuilder::new(folder);
    walk.git_global(false).require_git(false);
    walk
}

fn search(
    effort: Effort,
    tool: &str,
    args: &Value,
    flags: &[&str],
    directly: fn(&Path) -> usize,
) -> Measured {
    let effort = Effort { rounds: effort.rounds.min(ROUNDS), ..effort };
    let tree = tree(FILES / effort.shrink);
    let bench = Bench::new(tree.path());
    let rg = |sort: &[&str]| {
        let mut command = Command::new("rg");
        command.args(["--no-config", "--no-ignore-global", "--no-require-git"]);
        command.args(sort).args(flags).current_dir(tree.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        command.output().expect("ripgrep is installed").stdout
    };
    let found = bench.call(tool, args)["files"].as_array().map_or(0, Vec::len);
    let lines = rg(&[]).iter().filter(|byte| **byte == b'\n').count();
    assert_eq!((found, directly(tree.path())), (lines, lines), "all find the same");
    let lanes = race(
        effort,
        [
            timed("rg: its own program", || drop(black_box(rg(&[])))),
            timed("ripgrep's libraries, called directly", || {
                black_box(directly(tree.path()));
            }),
            timed("rg: the same, in order", || drop(black_box(rg(&["--sort", "path"])))),
            timed("tooltape: the whole call, in order", || {
                black_box(bench.call(tool, args));
            }),
        ],
    );
    Measured::of(lanes[3].ratio, &lanes)
}

/// `kit.read`: a file read by the tool, with its lines counted, its hash and all of a call, beside
/// the bare library call.
pub fn read(effort: Effort) -> Measured {
    let folder = tempfile::tempdir().expect("a folder for a while");
    let path = folder.path().join("a.txt");
    let text = "a line of a text that is read again and again\n".repeat(READ_BYTES / 46);
    fs::write(&path, text).expect("the folder takes files");
    let bench = Bench::new(folder.path());
    let args = json!({ "path": "a.txt" });
    let lanes = race(
        effort,
        [
            timed("std: read_to_string", || {
                black_box(fs::read_to_string(&path)).expect("the file is there");
            }),
            timed("tooltape: the whole call", || {
                black_box(bench.call("read_file", &args));
            }),
        ],
    );
    Measured::of(lanes[1].nanos / 1e3, &lanes)
}

/// A racer whose time is the time that passes, since another program's is none of this one's.
fn timed<'a>(name: &str, mut work: impl FnMut() + 'a) -> Racer<'a> {
    Racer::timed(name, move |times| {
        let start = Instant::now();
        (0..times).for_each(|_| work());
        start.elapsed()
    })
}

struct Bench {
    runtime: Runtime,
    run: Run,
}

impl Bench {
    fn new(folder: &Path) -> Bench {
        let runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
        let toolbox = Toolbox::new(tooltape_kit::tools()).expect("the tools have names");
        let files = Workspace::open(folder).expect("the folder is there");
        Bench { runtime, run: Run::new(&toolbox).grant(files) }
    }

    fn call(&self, tool: &str, args: &Value) -> Value {
        let proposals = vec![Proposal::new("c", tool, args.to_string())];
        let replies = self.runtime.block_on(self.run.batch(proposals)).expect("the run goes on");
        let value = replies[0].value.as_ref();
        value.unwrap_or_else(|| panic!("{}", replies[0].text())).to_value()
    }
}

/// So many source files of crates that were fetched to build this.
fn tree(files: usize) -> TempDir {
    let folder = tempfile::tempdir().expect("a folder for a while");
    let home = env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".cargo")));
    let registry = home.expect("somebody's home").join("registry/src");
    let mut left = files;
    for index in fs::read_dir(registry).into_iter().flatten().flatten() {
        copy(&index.path(), &folder.path().join(index.file_name()), &mut left);
    }
    folder
}

fn copy(from: &Path, to: &Path, left: &mut usize) {
    let mut entries: Vec<_> = fs::read_dir(from).into_iter().flatten().flatten().collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, to) = (entry.path(), to.join(entry.file_name()));
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => copy(&path, &to, left),
            Ok(kind) if kind.is_file() && *left > 0 => {
                *left -= 1;
                let folder = to.parent().expect("it is in a folder");
                let copied = fs::create_dir_all(folder).and_then(|()| fs::copy(&path, &to));
                copied.expect("the folder takes files");
            }
            Ok(_) | Err(_) => {}
        }
    }
}

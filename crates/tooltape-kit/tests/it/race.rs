//! A directory and a link to the outside change places at full speed while every tool works.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tooltape::{Random, Run};
use tooltape_kit::{Workspace, WorkspacePath};

use crate::naive;
use crate::users::as_each;
use crate::world::{CANARY, World, call, run_in};

/// The variable that says how long the race is, in seconds.
const SECONDS: &str = "TOOLTAPE_RACE_SECONDS";
const SECONDS_DEFAULT: u64 = 30;
/// How often a tool must have met the folder, and how often the link, however long that takes.
const MET_MIN: usize = 20;
/// The most calls of a tool, where a busy machine lets the exchange hardly happen.
const CALLS_MAX: usize = 2_000_000;
/// The most tries of the control, which needs only one escape.
const CONTROL_TRIES_MAX: usize = 2_000_000;

/// A call that is about `dir/NAME`, which is a file inside as well as behind the link.
struct Racer {
    name: &'static str,
    tool: &'static str,
    args: &'static str,
}

/// Every file tool, each with a file of its own.
const RACERS: [Racer; 12] = [
    Racer { name: "listed", tool: "list_dir", args: r#"{"path":"dir"}"# },
    Racer { name: "read", tool: "read_file", args: r#"{"path":"dir/read"}"# },
    Racer { name: "globbed", tool: "glob", args: r#"{"pattern":"*","path":"dir"}"# },
    Racer { name: "searched", tool: "grep", args: r#"{"pattern":"line|A","path":"dir"}"# },
    Racer {
        name: "written",
        tool: "write_file",
        args: r#"{"path":"dir/written","content":"OWNED\n","overwrite":true}"#,
    },
    Racer {
        name: "deep",
        tool: "write_file",
        args: r#"{"path":"dir/more/deep","content":"OWNED\n","create_dirs":true}"#,
    },
    Racer {
        name: "edited",
        tool: "edit_file",
        args: r#"{"path":"dir/edited","edits":[{"old":"line","new":"OWNED"}]}"#,
    },
    Racer {
        name: "patched",
        tool: "apply_patch",
        args: r#"{"paths":["dir/patched"],"patch":
            "--- a/dir/patched\n+++ b/dir/patched\n@@ -2 +2 @@\n-line\n+OWNED\n"}"#,
    },
    Racer {
        name: "created",
        tool: "apply_patch",
        args: r#"{"paths":["dir/new"],"patch":
            "--- /dev/null\n+++ b/dir/new\n@@ -0,0 +1 @@\n+OWNED\n"}"#,
    },
    Racer { name: "taken", tool: "move_file", args: r#"{"from":"dir/taken","to":"got"}"# },
    Racer {
        name: "brought",
        tool: "move_file",
        args: r#"{"from":"source","to":"dir/brought","overwrite":true}"#,
    },
    Racer { name: "deleted", tool: "delete_file", args: r#"{"path":"dir/deleted"}"# },
];

#[test]
fn no_exchange_of_a_directory_for_a_link_leads_out() {
    as_each("race::no_exchange_of_a_directory_for_a_link_leads_out", |user| {
        let world = World::new();
        world.file("dir/canary", "inside\nline\n").link("../outside", "link");
        for Racer { name, .. } in &RACERS {
            let text = format!("{CANARY}line\n");
            fs::write(world.folder().join("outside").join(name), text).unwrap();
        }
        // Whatever it is called meanwhile, this is the folder inside.
        let inside = Workspace::open(world.at("dir")).unwrap();
        fs::write(world.folder().join("outside/elsewhere"), CANARY).unwrap();
        let before = world.outside();
        let seconds = std::env::var(SECONDS).map_or(SECONDS_DEFAULT, |text| text.parse().unwrap());
        let until = Instant::now() + Duration::from_secs(seconds);
        let met = storm(&world, || {
            thread::scope(|scope| {
                let (world, inside) = (&world, &inside);
                let race = |racer| scope.spawn(move || race(racer, world, inside, until));
                let racers: Vec<_> = RACERS.iter().map(race).collect();
                racers.into_iter().map(|racer| racer.join().unwrap()).collect::<Vec<_>>()
            })
        });
        assert_eq!(world.outside(), before);
        let calls: usize = met.iter().map(|met| met.inside + met.refused).sum();
        let escapes: usize = met.iter().map(|met| met.escapes).sum();
        eprintln!("fs-07: {calls} calls in {seconds} s as {user}, {escapes} escapes");
        assert_eq!(escapes, 0);
    });
}

#[derive(Debug, Default)]
struct Met {
    inside: usize,
    refused: usize,
    escapes: usize,
}

/// Calls a tool until the time is over and it has met the directory as well as the link.
fn race(racer: &Racer, world: &World, inside: &Workspace, until: Instant) -> Met {
    let run = run_in(&world.at(""));
    let mut met = Met::default();
    while Instant::now() < until || met.inside < MET_MIN || met.refused < MET_MIN {
        assert!(met.inside + met.refused < CALLS_MAX, "{} met no race: {met:?}", racer.name);
        attempt(racer, world, inside, &run, &mut met);
    }
    met
}

/// Makes one call, after whatever the last one did is undone inside.
fn attempt(racer: &Racer, world: &World, inside: &Workspace, run: &Run, met: &mut Met) {
    let path = |text: &str| text.parse::<WorkspacePath>().unwrap();
    match racer.name {
        "deep" => {
            let _ = inside.remove(&path("more/deep"));
            let _ = inside.remove(&path("more"));
        }
        "created" => _ = inside.remove(&path("new")),
        "brought" => fs::write(world.at("source"), "inside\nline\n").unwrap(),
        name => {
            if name == "taken" {
                let _ = fs::remove_file(world.at("got"));
            }
            inside.write(&path(name), b"inside\nline\n", &Random::system()).unwrap();
        }
    }
    let reply = call(run, racer.tool, racer.args);
    let text = reply.text();
    // What is listed outside are the same names, but for this one.
    let escaped = text.contains(CANARY.trim()) || text.contains("elsewhere");
    met.escapes += usize::from(escaped);
    met.refused += usize::from(reply.is_error);
    met.inside += usize::from(!reply.is_error);
}

#[test]
fn the_usual_check_loses_this_race() {
    let world = World::new();
    world.file("dir/canary", "inside\n").link("../outside", "link");
    let root = fs::canonicalize(world.at("")).unwrap();
    let read = || naive::read_checked(&root, "dir/canary");
    let escapes =
        storm(&world, || (0..CONTROL_TRIES_MAX).any(|_| read().is_ok_and(|text| text == CANARY)));
    assert!(escapes, "the control held, so the race does not bite");
}

/// Works while `dir` and `link` change places, at least as often as a thread gets to run.
fn storm<T>(world: &World, work: impl FnOnce() -> T) -> T {
    let (done, exchanges) = (AtomicBool::new(false), AtomicU64::new(0));
    let (dir, link) = (world.at("dir"), world.at("link"));
    thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                exchange(&dir, &link);
                exchanges.fetch_add(1, Ordering::Relaxed);
            }
        });
        while exchanges.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let _stop = Stop(&done);
        work()
    })
}

/// Ends the exchange, whether the work succeeded or panicked.
struct Stop<'a>(&'a AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn exchange(one: &Path, other: &Path) {
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
}

//! A directory and a link to the outside change places at full speed while every tool works.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use rustix::fs::{CWD, RenameFlags, renameat_with};
use tooltape::{Proposal, Reply};

use crate::naive;
use crate::world::{CANARY, World, calls, run_in};

/// The least calls of a tool that only reads.
const READS_MIN: usize = 4_000;
/// The least edits, each of which waits for the disk twice.
const EDITS_MIN: usize = 200;
/// The most calls of a tool, where a busy machine lets the exchange hardly happen.
const CALLS_MAX: usize = 200_000;
/// The most tries of the control, which needs only one escape.
const CONTROL_TRIES_MAX: usize = 2_000_000;
/// Calls of one batch.
const BATCH: usize = 100;

#[test]
fn no_exchange_of_a_directory_for_a_link_leads_out() {
    let world = World::new();
    world.file("dir/canary", "inside\n").link("../outside", "link");
    fs::write(world.folder().join("outside/elsewhere"), CANARY).unwrap();
    let before = world.outside();
    storm(&world, || {
        play(&world, "list_dir", READS_MIN, r#"{"path":"dir"}"#);
        play(&world, "read_file", READS_MIN, r#"{"path":"dir/canary"}"#);
        // This edit can be made inside and outside alike.
        let args = r#"{"path":"dir/canary","edits":[{"old":"\n","new":"!\n"}]}"#;
        play(&world, "edit_file", EDITS_MIN, args);
    });
    assert_eq!(world.outside(), before);
    // Whatever was edited is inside, under the one name or the other.
    let is_dir = fs::symlink_metadata(world.at("dir")).unwrap().is_dir();
    let inside = world.text(if is_dir { "dir/canary" } else { "link/canary" });
    assert!(inside.starts_with("inside!") && inside.ends_with("!\n"), "{inside}");
}

/// Calls a tool until it has met the directory as well as the link.
fn play(world: &World, tool: &str, calls_min: usize, args: &str) {
    let mut seen = Seen::default();
    while seen.calls() < calls_min || seen.inside == 0 || seen.refused == 0 {
        assert!(seen.calls() < CALLS_MAX, "{tool} did not meet the race: {seen:?}");
        let proposals = (0..BATCH).map(|at| Proposal::new(at.to_string(), tool, args));
        seen.look(&calls(&run_in(&world.at("")), proposals.collect()));
    }
    assert_eq!(seen.escapes, 0, "{tool}");
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

#[derive(Debug, Default)]
struct Seen {
    inside: usize,
    refused: usize,
    escapes: usize,
}

impl Seen {
    fn calls(&self) -> usize {
        self.inside + self.refused
    }

    fn look(&mut self, replies: &[Reply]) {
        for reply in replies {
            let text = reply.text();
            let escaped = text.contains(CANARY.trim()) || text.contains("elsewhere");
            self.escapes += usize::from(escaped);
            self.refused += usize::from(reply.is_error);
            self.inside += usize::from(!reply.is_error);
        }
    }
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

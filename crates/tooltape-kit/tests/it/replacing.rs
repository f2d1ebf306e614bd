//! How a file is replaced: as a whole, with its owner and mode, and never what others hold.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use expect_test::expect;
use tooltape::{Executed, Random};
use tooltape_kit::{Workspace, WorkspacePath};

use crate::naive;
use crate::world::{CANARY, World, code};

const EDIT: &str = r#"{"path":"a.txt","edits":[{"old":"one","new":"two"}]}"#;

#[test]
fn permissions_are_kept_but_none_that_change_who_a_program_runs_as() {
    for (mode, kept) in
        [(0o644, 0o644), (0o755, 0o755), (0o640, 0o640), (0o600, 0o600), (0o4755, 0o755)]
    {
        let world = World::new();
        world.file("a.txt", "one");
        fs::set_permissions(world.at("a.txt"), fs::Permissions::from_mode(mode)).unwrap();
        assert_eq!(code(&world.call("edit_file", EDIT)), "ok");
        assert_eq!(world.at("a.txt").metadata().unwrap().mode() & 0o7777, kept, "{mode:o}");
    }
}

#[test]
fn the_owner_is_kept() {
    let world = World::new();
    world.file("a.txt", "one");
    // Only root may give a file away; for everybody else the owner is their own.
    let given = chown(world.at("a.txt"), Some(65_534), Some(65_534));
    let before = world.at("a.txt").metadata().unwrap();
    assert_eq!(given.is_ok(), before.uid() == 65_534);
    assert_eq!(code(&world.call("edit_file", EDIT)), "ok");
    let after = world.at("a.txt").metadata().unwrap();
    assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
    assert_ne!(after.ino(), before.ino());
}

#[test]
fn a_file_that_nobody_may_write_is_refused() {
    let world = World::new();
    world.file("a.txt", "one");
    fs::set_permissions(world.at("a.txt"), fs::Permissions::from_mode(0o444)).unwrap();
    world.check(
        &format!("edit_file {EDIT}"),
        expect![[r#"
            [read_only] not executed: `a.txt` is read-only, expected a file that its
                owner may write
        "#]],
    );
    assert_eq!(world.text("a.txt"), "one");
}

#[test]
fn another_link_to_the_file_keeps_the_old_content() {
    // FS-12: the inode of a file outside, linked into the workspace.
    let world = World::new();
    let linked =
        || fs::hard_link(world.folder().join("outside/canary"), world.at("a.txt")).unwrap();
    linked();
    let outside = world.outside();
    let args = r#"{"path":"a.txt","edits":[{"old":"CANARY","new":"OWNED"}]}"#;
    assert_eq!(code(&world.call("edit_file", args)), "ok");
    assert_eq!(world.text("a.txt"), "OWNED\n");
    assert_eq!(world.outside(), outside);

    fs::remove_file(world.at("a.txt")).unwrap();
    linked();
    naive::edit_file(&world.at(""), "a.txt", "CANARY", "OWNED").unwrap();
    let canary = fs::read_to_string(world.folder().join("outside/canary")).unwrap();
    assert_ne!(canary, CANARY, "the control writes through the link");
}

#[test]
fn a_file_that_changes_while_it_is_edited_is_left_alone() {
    type Change = fn(&World);
    let changes: [(&str, Change, &str); 4] = [
        ("written", |world| fs::write(world.at("a.txt"), "three").unwrap(), "three"),
        ("appended", |world| fs::write(world.at("a.txt"), "one!").unwrap(), "one!"),
        (
            "replaced",
            |world| {
                fs::write(world.at("b.txt"), "one").unwrap();
                fs::rename(world.at("b.txt"), world.at("a.txt")).unwrap();
            },
            "one",
        ),
        (
            "linked",
            |world| {
                fs::remove_file(world.at("a.txt")).unwrap();
                world.link("../outside/canary", "a.txt");
            },
            CANARY,
        ),
    ];
    let path: WorkspacePath = "a.txt".parse().unwrap();
    for (what, change, after) in changes {
        let world = World::new();
        world.file("a.txt", "one");
        let outside = world.outside();
        let files = Workspace::open(world.at("")).unwrap();
        let original = files.original(&path).unwrap();
        change(&world);
        let refusal = original.replace(b"two", &Random::system()).unwrap_err();
        assert_eq!(refusal.code(), "precondition_failed", "{what}");
        assert_eq!(refusal.tell().executed(), Executed::NotExecuted);
        assert_eq!(world.text("a.txt"), after, "{what}");
        assert_eq!(world.names(""), ["a.txt"], "{what}: nothing is left behind");
        assert_eq!(world.outside(), outside);
    }
    // The control writes over what somebody else wrote meanwhile.
    let world = World::new();
    world.file("a.txt", "one");
    let read = world.text("a.txt");
    world.file("a.txt", "three");
    fs::write(world.at("a.txt"), read.replace("one", "two")).unwrap();
    assert_eq!(world.text("a.txt"), "two");
}

#[test]
fn a_directory_that_is_exchanged_meanwhile_changes_nothing_about_what_is_replaced() {
    let world = World::new();
    world.file("dir/canary", "inside\n");
    let outside = world.outside();
    let files = Workspace::open(world.at("")).unwrap();
    let original = files.original(&"dir/canary".parse().unwrap()).unwrap();
    fs::rename(world.at("dir"), world.at("moved")).unwrap();
    world.link("../outside", "dir");
    original.replace(b"changed\n", &Random::system()).unwrap();
    assert_eq!(world.text("moved/canary"), "changed\n");
    assert_eq!(world.outside(), outside);
}

#[test]
fn a_file_whose_directory_is_gone_is_left_alone() {
    let world = World::new();
    world.file("dir/a.txt", "one");
    let files = Workspace::open(world.at("")).unwrap();
    let original = files.original(&"dir/a.txt".parse().unwrap()).unwrap();
    fs::rename(world.at("dir/a.txt"), world.at("a.txt")).unwrap();
    fs::remove_dir(world.at("dir")).unwrap();
    let refusal = original.replace(b"two", &Random::system()).unwrap_err().tell();
    assert_eq!(refusal.executed(), Executed::NotExecuted, "{refusal:?}");
    assert_eq!((world.text("a.txt").as_str(), world.names("")), ("one", vec!["a.txt".into()]));
}

#[test]
fn a_name_that_is_taken_is_never_written_to() {
    let world = World::new();
    world.file("a.txt", "one");
    let name = format!(".unfinished-{:016x}", Random::seeded([7; 32]).next_u64());
    world.link("../outside/canary", &name);
    let outside = world.outside();
    let files = Workspace::open(world.at("")).unwrap();
    let original = files.original(&"a.txt".parse().unwrap()).unwrap();
    original.replace(b"two", &Random::seeded([7; 32])).unwrap();
    assert_eq!(world.text("a.txt"), "two");
    assert_eq!(world.names(""), [&*name, "a.txt"]);
    assert_eq!(world.outside(), outside);
}

#[test]
fn whoever_reads_meanwhile_finds_the_old_file_or_the_new_one() {
    const EDITS: usize = 40;
    let (old, new) = ("a".repeat(64 << 10), "b".repeat(64 << 10));
    let world = World::new();
    world.file("a.txt", &old);
    let (done, path) = (AtomicBool::new(false), world.at("a.txt"));
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                let text = fs::read_to_string(&path).unwrap();
                assert!(text == old || text == new, "a mixture of {} bytes", text.len());
            }
        });
        let edits = (0..EDITS).map(|at| {
            let (from, to) = if at % 2 == 0 { (&old, &new) } else { (&new, &old) };
            let args = format!(r#"{{"path":"a.txt","edits":[{{"old":"{from}","new":"{to}"}}]}}"#);
            world.call("edit_file", &args)
        });
        let failed = edits.filter(|reply| reply.is_error).count();
        done.store(true, Ordering::Relaxed);
        reader.join().unwrap();
        assert_eq!(failed, 0);
    });
    assert_eq!(world.names(""), ["a.txt"]);
}

//! What the tools touch, and so which of their calls may overlap.

use std::sync::Arc;

use serde_json::json;
use tooltape::{Access, Canon, Footprint, Registered, Tool};
use tooltape_kit::{WorkspacePath, tools};

use crate::world::World;

fn footprint(name: &str, path: &str) -> Footprint {
    let tool = tools().into_iter().find(|tool| &*tool.spec().name == name).unwrap();
    let edits = json!([{ "old": "a", "new": "b" }]);
    let args = match name {
        "edit_file" => json!({ "path": path, "edits": edits }),
        _ => json!({ "path": path }),
    };
    touched(tool, &Canon::of(&args).unwrap())
}

fn touched(tool: Arc<dyn Tool>, args: &Canon) -> Footprint {
    let typed = (tool.spec().hooks.read.as_ref().unwrap())(args).unwrap();
    Registered::new(tool).unwrap().footprint(args, Some(&typed)).unwrap()
}

#[test]
fn edits_of_different_files_may_overlap_and_of_one_file_may_not() {
    let edit = |path| footprint("edit_file", path);
    assert!(!edit("a.txt").conflicts(&edit("b.txt")));
    assert!(!edit("src/a.txt").conflicts(&edit("src2/a.txt")));
    for same in ["a.txt", "./a.txt", "././a.txt"] {
        assert!(edit("a.txt").conflicts(&edit(same)), "{same}");
    }
    assert_eq!(edit("src/a.txt"), Footprint::writes("file:src/a.txt"));
}

#[test]
fn names_that_some_file_system_takes_for_one_never_overlap() {
    let writes = |path: &str| path.parse::<WorkspacePath>().unwrap().writes();
    for (one, other) in [
        ("a.txt", "A.TXT"),
        ("src/a.txt", "SRC/a.txt"),
        // One letter, or a letter and its accent.
        ("\u{e9}", "e\u{301}"),
        // The Kelvin sign is a capital of `k` to some, and a joiner is nothing.
        ("k", "\u{212a}"),
        ("ab", "a\u{200c}b"),
        ("a", "a."),
        ("a", "a "),
        ("a", "a:b"),
        ("documents", "docume~1"),
        ("documents/a", "docume~1/a"),
    ] {
        assert!(writes(one).conflicts(&writes(other)), "`{one}` and `{other}`");
    }
    assert!(!writes("src/\u{e9}").conflicts(&writes("lib/\u{e9}")));
}

#[test]
fn a_path_that_is_no_key_is_a_write_of_everything() {
    let deep = vec!["d"; 65].join("/");
    for path in [deep.as_str(), &"a/".repeat(2_045), &format!("{}a", "b/".repeat(64))] {
        let path: WorkspacePath = path.trim_end_matches('/').parse().unwrap();
        assert!(path.writes().is_unknown_write());
    }
    // A control character ends what is known of the path.
    let path: WorkspacePath = "src/a\n".parse().unwrap();
    assert_eq!(path.writes(), Footprint::writes("file:src"));
    assert_eq!(WorkspacePath::root().writes(), Footprint::writes("file:"));
}

#[test]
fn a_read_through_a_link_waits_for_the_edit_of_what_it_leads_to() {
    let world = World::new();
    world.file("src/a.txt", "one\n").link("src", "link");
    // The link is followed, and nothing in its path says so.
    assert_eq!(world.call("read_file", r#"{"path":"link/a.txt"}"#).fault, None);
    let (edit, read) = (footprint("edit_file", "src/a.txt"), footprint("read_file", "link/a.txt"));
    assert!(edit.conflicts(&read) && edit.conflicts(&footprint("list_dir", "link")));
    // To write, no link is followed: so another path is another file.
    let edit = r#"{"path":"link/a.txt","edits":[{"old":"one","new":"two"}]}"#;
    assert!(world.call("edit_file", edit).fault.is_some());
}

#[test]
fn reads_overlap_each_other_and_what_is_not_a_file() {
    let read = footprint("read_file", "a.txt");
    assert!(!read.conflicts(&footprint("read_file", "a.txt")));
    assert!(!read.conflicts(&footprint("list_dir", ".")));
    assert!(!read.conflicts(&Footprint::writes("db:users")));
    assert!(read.conflicts(&Footprint::everything(Access::Write)));
    let tool = tools().into_iter().next().unwrap();
    assert_eq!(touched(tool, &Canon::of(&json!({})).unwrap()), read);
}

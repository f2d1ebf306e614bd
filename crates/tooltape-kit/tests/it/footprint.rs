//! What the tools touch, and so which of their calls may overlap.

use std::sync::Arc;

use serde_json::json;
use tooltape::{Access, Canon, Footprint, Registered, Tool};
use tooltape_kit::{WorkspacePath, tools};

use crate::world::{World, code};

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
fn a_call_follows_no_link_so_another_path_is_another_file() {
    let world = World::new();
    world.file("src/a.txt", "one\n").link("src", "link");
    for (tool, args) in [
        ("read_file", r#"{"path":"link/a.txt"}"#),
        ("list_dir", r#"{"path":"link"}"#),
        ("edit_file", r#"{"path":"link/a.txt","edits":[{"old":"one","new":"two"}]}"#),
    ] {
        let reply = world.call(tool, args);
        assert_eq!(code(&reply), "symlink", "{tool}");
        assert!(reply.text().contains("to `src"), "{tool} says where it leads: {}", reply.text());
    }
    let edit = footprint("edit_file", "src/a.txt");
    assert!(edit.conflicts(&footprint("read_file", "src/a.txt")));
    assert!(edit.conflicts(&footprint("list_dir", "src")));
    assert!(!edit.conflicts(&footprint("read_file", "src/b.txt")));
    assert!(!edit.conflicts(&footprint("list_dir", "lib")));
}

#[test]
fn a_change_of_several_files_touches_each_of_them() {
    let of = |name: &str, args: serde_json::Value| {
        let tool = tools().into_iter().find(|tool| &*tool.spec().name == name).unwrap();
        touched(tool, &Canon::of(&args).unwrap())
    };
    let moved = of("move_file", json!({ "from": "a.txt", "to": "b.txt" }));
    let patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-a\n+b\n--- /dev/null\n+++ b/src/c.txt\n\
                 @@ -0,0 +1 @@\n+c\n";
    let patched = of("apply_patch", json!({ "paths": ["a.txt", "src/c.txt"], "patch": patch }));
    for (footprint, path) in [(&moved, "a.txt"), (&moved, "b.txt"), (&patched, "src/c.txt")] {
        assert!(footprint.conflicts(&crate::footprint::footprint("read_file", path)), "{path}");
    }
    assert!(!moved.conflicts(&footprint("edit_file", "c.txt")));
    assert!(!patched.conflicts(&footprint("edit_file", "src/d.txt")));
    assert!(patched.conflicts(&moved));
}

#[test]
fn reads_overlap_each_other_and_what_is_not_a_file() {
    let read = footprint("read_file", "a.txt");
    assert!(!read.conflicts(&footprint("read_file", "a.txt")));
    let all = footprint("list_dir", ".");
    assert!(!read.conflicts(&all));
    assert!(!read.conflicts(&Footprint::writes("db:users")));
    assert!(read.conflicts(&Footprint::everything(Access::Write)));
    let tool = tools().into_iter().next().unwrap();
    assert_eq!(touched(tool, &Canon::of(&json!({})).unwrap()), all);
}

//! A disk that is full: the call says so, and nothing has changed.
#![cfg(target_os = "linux")]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::json;
use tooltape::Executed;

use crate::naive;
use crate::users::as_each;
use crate::world::{call, code, run_in};

/// The variable that says where the full disk is.
const DISK: &str = "TOOLTAPE_FULL_DISK";
/// What fits, twice, and what does not.
const SMALL: usize = 4 << 10;
const LARGE: usize = 200 << 10;

#[test]
fn a_full_disk_is_told_and_changes_nothing() {
    if let Ok(disk) = std::env::var(DISK) {
        return on_a_small_disk(Path::new(&disk));
    }
    as_each("full::a_full_disk_is_told_and_changes_nothing", |_| mounted());
}

/// Makes the test on a small disk of its own.
fn mounted() {
    let folder = tempfile::tempdir().unwrap();
    // In a mount namespace of its own, so that nobody else ever sees the disk.
    let script = r#"mount -t tmpfs -o size=64k tmpfs "$1" && exec "$2" --exact "$3" --nocapture"#;
    let status = Command::new("unshare")
        .args(["-Urm", "sh", "-c", script, "sh"])
        .arg(folder.path())
        .arg(std::env::current_exe().unwrap())
        .arg("full::a_full_disk_is_told_and_changes_nothing")
        .env(DISK, folder.path())
        .status()
        .unwrap();
    assert!(status.success(), "a private disk was mounted, and the test on it passed");
}

fn on_a_small_disk(disk: &Path) {
    let (small, large) = ("a".repeat(SMALL), "b".repeat(LARGE));
    fs::write(disk.join("a.txt"), format!("{small}\n")).unwrap();
    let run = run_in(disk);
    let lines = |text: &str| format!("--- /dev/null\n+++ b/{text}\n@@ -0,0 +1 @@\n");
    let patch = format!("{}+c\n{}+{large}\n", lines("c.txt"), lines("d/d.txt"));
    for (tool, args) in [
        ("write_file", json!({ "path": "a.txt", "content": large, "overwrite": true })),
        ("write_file", json!({ "path": "d/b.txt", "content": large, "create_dirs": true })),
        ("edit_file", json!({ "path": "a.txt", "edits": [{ "old": small, "new": large }] })),
        ("apply_patch", json!({ "paths": ["c.txt", "d/d.txt"], "patch": patch })),
    ] {
        let reply = call(&run, tool, &args.to_string());
        assert_eq!(code(&reply), "disk_full", "{tool}: {}", reply.text());
        assert_eq!(reply.executed, Executed::NotExecuted, "{tool}");
        assert_eq!(fs::read_to_string(disk.join("a.txt")).unwrap(), format!("{small}\n"), "{tool}");
        assert_eq!(fs::read_dir(disk).unwrap().count(), 1, "{tool} leaves nothing behind");
    }
    let delete = call(&run, "delete_file", r#"{"path":"a.txt"}"#);
    assert_eq!(code(&delete), "ok", "what is full can be made room in: {}", delete.text());

    // The control is left with a file that is neither the old one nor the new one.
    fs::write(disk.join("a.txt"), &small).unwrap();
    naive::edit_file(disk, "a.txt", &small, &large).unwrap_err();
    let text = fs::read_to_string(disk.join("a.txt")).unwrap();
    assert!(text != small && text != large, "{} bytes", text.len());
}

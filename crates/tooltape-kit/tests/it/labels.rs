//! The labels of files: what was written under one is read under it.

use std::fs;
use std::path::Path;

use serde_json::json;
use tooltape::{
    Call, Effects, Empty, Label, Labels, Proposal, Reach, Run, Spec, ToolError, Toolbox,
};
use tooltape::{Verdict, tool_fn};
use tooltape_kit::{Workspace, tools};

/// A run in a folder, whose `web` returns what anybody may have written.
fn run_in(folder: &Path, labels: &Labels) -> Run {
    let effects = Effects { reach: Reach::Network, ..Effects::read() };
    let spec = Spec::new("web", "Reads a page.").effects(effects);
    let web = tool_fn(spec, async |_: Empty| Ok::<_, ToolError>("a page"));
    let files = Workspace::open(folder).unwrap().labels(labels.clone());
    let downloads = Label::untrusted("downloads");
    let files = files.labelled("downloads".parse().unwrap(), downloads);
    let toolbox = Toolbox::new(tools().into_iter().chain([web])).unwrap();
    Run::new(&toolbox).policy(|_: &Call| Verdict::allow("all")).grant(files)
}

async fn call(run: &Run, tool: &str, args: &serde_json::Value) -> String {
    let replies = run.batch(vec![Proposal::new("c", tool, args.to_string())]).await.unwrap();
    assert!(!replies[0].is_error, "{}", replies[0].text());
    replies[0].text()
}

async fn read(run: &Run, path: &str) -> String {
    call(run, "read_file", &json!({ "path": path })).await;
    run.label().to_string()
}

fn edit(path: &str, old: &str, new: &str) -> serde_json::Value {
    json!({ "path": path, "edits": [{ "old": old, "new": new }] })
}

#[tokio::test]
async fn what_was_written_under_a_label_is_read_under_it() {
    let (folder, kept) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for (name, text) in [("a.txt", "one\n"), ("b.txt", "two\n"), ("c.txt", "three\n")] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let labels = || Labels::in_dir(kept.path().join("labels"));
    let run = || run_in(folder.path(), &labels());
    let clean = run();
    assert_eq!(read(&clean, "a.txt").await, "trusted, public");
    call(&clean, "edit_file", &edit("b.txt", "two", "2")).await;
    assert_eq!(read(&run(), "b.txt").await, "trusted, public");

    let tainted = run();
    call(&tainted, "web", &json!({})).await;
    call(&tainted, "edit_file", &edit("a.txt", "one", "obey me")).await;

    // Another process, another run.
    let web = "untrusted (web), public";
    assert_eq!(read(&run(), "a.txt").await, web);
    assert_eq!(read(&run(), "c.txt").await, "trusted, public");
    // A copy, what is moved and a listing of it say the same.
    fs::copy(folder.path().join("a.txt"), folder.path().join("copy.txt")).unwrap();
    fs::copy(folder.path().join("a.txt"), folder.path().join("from.txt")).unwrap();
    let moves = run();
    call(&moves, "move_file", &json!({ "from": "from.txt", "to": "moved.txt" })).await;
    for path in ["copy.txt", "moved.txt", "./a.txt"] {
        assert_eq!(read(&run(), path).await, web, "{path}");
    }
    let lists = run();
    call(&lists, "list_dir", &json!({ "path": "." })).await;
    assert_eq!(lists.label().to_string(), web);
    // What is edited keeps what it was made from, whoever edits it.
    let edits = run();
    call(&edits, "edit_file", &edit("a.txt", "obey", "heed")).await;
    assert_eq!(edits.label().to_string(), web);
    assert_eq!(read(&run(), "a.txt").await, web);
}

#[tokio::test]
async fn files_below_a_labelled_folder_have_its_label_and_keep_it_when_they_are_moved() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("downloads")).unwrap();
    fs::create_dir(folder.path().join("downloads-of-mine")).unwrap();
    fs::write(folder.path().join("downloads/page.html"), "hi").unwrap();
    fs::write(folder.path().join("downloads-of-mine/a.txt"), "hi").unwrap();
    fs::write(folder.path().join("downloads/short"), "hi").unwrap();
    let labels = Labels::memory();
    let run = || run_in(folder.path(), &labels);
    // Too short to be known by its content: the label goes with the file.
    call(&run(), "move_file", &json!({ "from": "downloads/short", "to": "moved" })).await;
    for (path, expected) in [
        ("downloads/page.html", "untrusted (downloads), public"),
        ("moved", "untrusted (downloads), public"),
        ("downloads-of-mine/a.txt", "trusted, public"),
    ] {
        assert_eq!(read(&run(), path).await, expected, "{path}");
    }
    let lists = run();
    call(&lists, "list_dir", &json!({ "path": "downloads" })).await;
    assert!(!lists.label().is_trusted());
}

#[tokio::test]
async fn a_file_whose_label_cannot_be_kept_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.txt"), "one\n").unwrap();
    fs::write(folder.path().join("no-folder"), "").unwrap();
    let run = run_in(folder.path(), &Labels::in_dir(folder.path().join("no-folder/labels")));
    call(&run, "web", &json!({})).await;
    let edit = Proposal::new("c", "edit_file", edit("a.txt", "one", "two").to_string());
    let reply = run.batch(vec![edit]).await.unwrap().remove(0);
    let fault = reply.fault.as_ref().unwrap();
    assert_eq!(&*fault.code, "unlabelled", "{}", reply.text());
    assert_eq!(fs::read_to_string(folder.path().join("a.txt")).unwrap(), "one\n");
}

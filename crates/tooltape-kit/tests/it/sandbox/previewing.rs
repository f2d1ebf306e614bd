//! A preview shows what a command would change, and changes nothing.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use expect_test::expect;
use serde_json::{Value, json};
use tooltape::Rights;

use super::lab::{Lab, helper, value};
use crate::world::{call, code, run_in};

/// Everything below a folder: each path with its content.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| match path.is_dir() {
        true => tree(&path),
        false => [(path.clone(), fs::read(&path).unwrap())].into(),
    });
    below.collect()
}

fn lab() -> Lab {
    let lab = Lab::new();
    for (path, text) in [
        ("kept.txt", "kept\n"),
        ("changed.txt", "one\ntwo\n"),
        ("deleted.txt", "gone\n"),
        ("folder/old.txt", "old\n"),
        ("folder/other.txt", "other\n"),
        ("tree/a/b.txt", "b\n"),
        (".git/config", "[core]\n"),
    ] {
        fs::create_dir_all(lab.at(path).parent().unwrap()).unwrap();
        fs::write(lab.at(path), text).unwrap();
    }
    lab
}

fn preview(lab: &Lab, command: &str) -> Value {
    value(&lab.call("shell", &json!({"command": command, "preview": true})))
}

#[test]
fn a_preview_lists_every_change_and_makes_none() {
    let lab = lab();
    let before = tree(&lab.at(""));
    let ran = preview(
        &lab,
        "sed -i s/two/three/ changed.txt; rm -r deleted.txt tree; echo new > made.txt; cat made.txt
         mkdir -p deep/er; echo x > deep/er/x; rm -r folder; mkdir folder; echo n > folder/new.txt
         head -c 9 /dev/urandom > binary; ln -s / link; echo x > .git/config; mkdir -p sub/.vscode",
    );
    assert_eq!((&ran["exit_code"], &ran["stdout"]), (&json!(0), &json!("new\n")), "{ran}");
    assert_eq!(tree(&lab.at("")), before, "nothing was changed");
    let changes = ran["preview"]["changes"].as_array().unwrap().iter().map(|change| {
        let word = |key: &str| change[key].as_str().unwrap();
        let mark = if change["protected"] == true { " protected" } else { "" };
        format!("{} {}{mark}\n", word("kind"), word("path"))
    });
    expect![[r#"
        changed .git/config protected
        created binary
        changed changed.txt
        created deep
        created deep/er
        created deep/er/x
        deleted deleted.txt
        deleted folder/old.txt
        deleted folder/other.txt
        created folder/new.txt
        created link
        created made.txt
        created sub
        created sub/.vscode protected
        deleted tree/a/b.txt
        deleted tree/a
        deleted tree
    "#]]
    .assert_eq(&changes.collect::<String>());
    let patch = ran["preview"]["patch"].as_str().unwrap();
    for part in [
        "--- a/changed.txt\n+++ b/changed.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n",
        "--- a/deleted.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-gone\n",
        "--- /dev/null\n+++ b/made.txt\n@@ -0,0 +1 @@\n+new\n",
    ] {
        assert!(patch.contains(part), "{part} in {patch}");
    }
    assert!(!patch.contains(".git"), "{patch}");
    assert_eq!(ran["preview"]["truncated"], false);
}

#[test]
fn a_preview_changes_nothing_however_hard_it_tries() {
    let lab = lab();
    let before = tree(&lab.at(""));
    let outside = tree(&lab.folder().join("outside"));
    for attack in [
        "touch /run/lower/owned; echo x > /run/lower/kept.txt; rm -rf /run/lower/*",
        "touch /run/over/upper/owned; rm -rf /run/over",
        "mount -o remount,rw /run/lower; umount /workspace; echo x > kept.txt",
        "echo x >> kept.txt; (setsid sh -c 'while :; do echo y >> kept.txt; done' &) ; exit 0",
        "perl -e 'open(my $f, \"+<\", \"kept.txt\") or die; print $f \"XXXX\"; sleep 0'",
        "ln kept.txt hard; echo x > hard; chmod 000 kept.txt; mv folder elsewhere",
        "rm -rf /workspace/* /workspace/.git",
        "head -c 900M /dev/zero > big",
    ] {
        let ran = preview(&lab, attack);
        assert_eq!(tree(&lab.at("")), before, "{attack}: {ran}");
        assert_eq!(tree(&lab.folder().join("outside")), outside, "{attack}");
        assert!(ran["preview"].is_object(), "{attack}: {ran}");
    }
}

#[test]
fn what_a_preview_shows_is_what_its_patch_does_where_that_is_allowed() {
    let lab = lab();
    let command = "sed -i s/two/three/ changed.txt; rm deleted.txt; echo new > made.txt
         mkdir -p deep/er; printf 'no end' > deep/er/x; echo more >> folder/old.txt";
    let ran = preview(&lab, command);
    let Value::Object(shown) = &ran["preview"] else { panic!("{ran}") };
    let args = json!({ "paths": shown["paths"], "patch": shown["patch"] }).to_string();
    let previewed = tree(&lab.at(""));
    // The same rules and rights as for every change.
    let only = ["fs:read:.", "fs:write:folder"].map(|right| right.parse().unwrap());
    let narrow = run_in(&lab.at("")).rights(Rights::of(only));
    assert!(call(&narrow, "apply_patch", &args).is_error);
    assert_eq!(tree(&lab.at("")), previewed, "a patch is made whole or not at all");
    let applied = call(&run_in(&lab.at("")), "apply_patch", &args);
    assert!(!applied.is_error, "{}", applied.text());
    let done = tree(&lab.at(""));
    let other = self::lab();
    other.shell(command);
    let expected = tree(&other.at(""));
    let relative = |tree: BTreeMap<PathBuf, Vec<u8>>, root: PathBuf| -> Vec<(PathBuf, Vec<u8>)> {
        tree.into_iter()
            .map(|(path, text)| (path.strip_prefix(&root).unwrap().into(), text))
            .collect()
    };
    assert_eq!(relative(done, lab.at("")), relative(expected, other.at("")));
}

#[test]
fn a_preview_needs_the_sandbox_and_the_right_to_write() {
    let args = json!({"command": "echo x > made", "preview": true});
    let lab = Lab::with(tooltape_kit::Sandbox::unsafe_without(helper()));
    assert_eq!(code(&lab.call("shell", &args)), "not_a_command");
    assert!(!lab.at("made").exists());
    let lab = Lab::holding("process:shell:sandbox fs:read:.");
    assert_eq!(code(&lab.call("shell", &args)), "not_a_command");
}

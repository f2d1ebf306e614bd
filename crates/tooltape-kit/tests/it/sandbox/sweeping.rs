//! Protected names that a process makes: none is there when its call has ended.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tooltape::Executed;
use tooltape_kit::{Command, Files, Helper, Sandbox, SandboxError, Workspace};

use super::lab::{Lab, value};
use crate::users::as_each;
use crate::world::code;

/// Where what was at a path is now, as the call says it.
fn now<'a>(ran: &'a Value, path: &str) -> &'a str {
    let set_aside = ran["set_aside"].as_array().unwrap();
    let found = set_aside.iter().find(|it| it["path"] == path);
    found.and_then(|it| it["now"].as_str()).unwrap_or_else(|| panic!("{path}: {ran}"))
}

/// The paths below a folder that end in one of these names.
fn named(folder: &Path, names: &[&str]) -> Vec<String> {
    let (mut found, mut waiting) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
            if entry.file_type().unwrap().is_dir() {
                waiting.push(entry.path());
            }
            if names.iter().any(|name| entry.file_name() == *name) {
                found.push(entry.path().display().to_string());
            }
        }
    }
    found
}

#[test]
fn a_folder_that_cannot_be_read_hides_nothing() {
    let test = "sandbox::sweeping::a_folder_that_cannot_be_read_hides_nothing";
    as_each(test, |user| {
        for (command, path) in [
            ("mkdir -p .git/hooks; chmod 300 .", ".git"),
            ("mkdir -p .git/hooks; chmod 400 .", ".git"),
            ("mkdir -p .git/hooks; chmod 000 .", ".git"),
            ("mkdir -p d/.git/hooks; chmod 400 d", "d/.git"),
            ("mkdir -p d/.git/hooks; chmod 300 d", "d/.git"),
            ("mkdir -p d/e/.git/hooks; chmod 400 d/e; chmod 200 d", "d/e/.git"),
            ("mkdir -p d/.git/hooks; chmod 500 d", "d/.git"),
            ("mkdir -p d/.git/.vscode; chmod 000 d/.git", "d/.git"),
        ] {
            let lab = Lab::new();
            let ran = lab.shell(command);
            assert!(lab.at(now(&ran, path)).exists(), "{user}: {command}: {ran}");
            assert_eq!(named(&lab.at(""), &[".git", ".vscode"]), [""; 0], "{user}: {command}");
        }
    });
}

#[test]
fn a_folder_that_could_not_be_read_before_stays_as_it_was() {
    let test = "sandbox::sweeping::a_folder_that_could_not_be_read_before_stays_as_it_was";
    as_each(test, |user| {
        use std::os::unix::fs::PermissionsExt;
        let lab = Lab::new();
        fs::create_dir_all(lab.at("closed/.git")).unwrap();
        let mode = |mode| fs::set_permissions(lab.at("closed"), fs::Permissions::from_mode(mode));
        mode(0o000).unwrap();
        let ran = lab.shell("chmod 700 closed; echo x > closed/x");
        assert_eq!(ran["set_aside"], json!([]), "{user}");
        let found = fs::metadata(lab.at("closed")).unwrap().permissions().mode();
        // Root reads it all the same, so for root it is a folder like any other.
        assert_eq!(found & 0o777, if user == "root" { 0o700 } else { 0 }, "{user}: {ran}");
        mode(0o700).unwrap();
        assert!(lab.at("closed/.git").exists(), "{user}");
    });
}

#[test]
fn a_folder_that_becomes_a_repository_by_what_is_in_it_is_none_afterwards() {
    let plant = "mkdir objects refs; echo 'ref: refs/heads/main' > HEAD; \
                 printf '[core]\\n\\tfsmonitor = ./evil\\n' > config";
    for (command, path) in [
        (plant.to_owned(), "HEAD"),
        (format!("mkdir -p a/b; cd a/b; {plant}"), "a/b/HEAD"),
        (format!("mkdir .git; cd .git; {plant}; mkdir -p .vscode new/.git"), ".git"),
        (format!("{plant}; mv HEAD real; ln -s real HEAD"), "HEAD"),
    ] {
        let lab = Lab::new();
        let ran = lab.shell(&command);
        assert!(fs::symlink_metadata(lab.at(now(&ran, path))).is_ok(), "{command}: {ran}");
        let names = ["HEAD", ".git", ".vscode"];
        assert_eq!(named(&lab.at(""), &names), [""; 0], "{command}");
    }
    let lab = Lab::new();
    assert_eq!(lab.shell("mkdir HEAD; echo x > head")["set_aside"], json!([]));
}

#[test]
fn a_repository_that_is_there_is_not_changed() {
    let lab = Lab::new();
    fs::create_dir(lab.at("bare")).unwrap();
    fs::write(lab.at("bare/HEAD"), "ref: refs/heads/main\n").unwrap();
    let ran = lab.shell("echo x > bare/config; rm -f bare/HEAD; mv bare/HEAD x; mv bare y; true");
    assert_eq!(ran["set_aside"], json!([]), "{ran}");
    assert!(!lab.at("bare/config").exists() && lab.at("bare/HEAD").exists(), "{ran}");
    fs::write(lab.at("HEAD"), "ref: refs/heads/main\n").unwrap();
    let reply = lab.call("shell", &json!({"command": "echo x > config"}));
    assert_eq!((code(&reply), reply.executed), ("workspace_unavailable", Executed::NotExecuted));
    assert!(!lab.at("config").exists());
}

#[test]
fn nobody_can_take_the_names_that_are_given() {
    let lab = Lab::new();
    let ran = lab.shell("seq -f set-aside.%.0f 1 1100 | xargs touch; mkdir .git");
    assert!(lab.at(now(&ran, ".git")).is_dir(), "{ran}");
    assert!(!lab.at(".git").exists());
}

#[test]
fn what_stays_in_its_place_makes_the_call_fail() {
    let lab = Lab::new();
    // Deeper than any path, so that only the folder on the way can be named.
    let deep = "for (1..30) { mkdir 'x' x 200; chdir 'x' x 200 } mkdir '.git'";
    let reply = lab.call("exec", &json!({"argv": ["perl", "-e", deep]}));
    assert_eq!((code(&reply), reply.executed), ("protected_left", Executed::Executed));
    assert!(reply.text().contains("could not be renamed: look at `xxx"), "{}", reply.text());
}

#[test]
fn a_protected_name_that_has_another_keeps_the_box_shut() {
    let write = "process:shell:sandbox fs:read:. fs:write:.";
    let read = "process:shell:sandbox fs:read:.";
    let command = json!({"command": "echo evil > real/plain"});
    for (link, why) in [
        ((|lab| symlink("real", lab.at(".vscode"))) as fn(&Lab) -> std::io::Result<()>, "link"),
        (|lab| symlink("nowhere", lab.at("real/.envrc")), "link"),
        (|lab| fs::hard_link(lab.at("real/plain"), lab.at(".envrc")), "more than one name"),
    ] {
        let reply = |rights| {
            let lab = Lab::holding(rights);
            fs::create_dir(lab.at("real")).unwrap();
            fs::write(lab.at("real/plain"), "mine\n").unwrap();
            link(&lab).unwrap();
            let reply = lab.call("shell", &command);
            assert_eq!(fs::read_to_string(lab.at("real/plain")).unwrap(), "mine\n");
            reply
        };
        let refused = reply(write);
        assert_eq!(code(&refused), "workspace_unavailable");
        assert_eq!(refused.executed, Executed::NotExecuted);
        assert!(refused.text().contains(why), "{}", refused.text());
        // Whoever writes nothing needs nothing held.
        assert_ne!(value(&reply(read))["exit_code"], 0);
    }
}

#[test]
fn what_was_there_is_known_only_where_it_was() {
    let lab = Lab::new();
    fs::create_dir_all(lab.at("sub/deep")).unwrap();
    fs::write(lab.at("sub/deep/.envrc"), "mine\n").unwrap();
    fs::write(lab.at(".envrc"), "mine\n").unwrap();
    let ran = lab.shell("mv .envrc .mcp.json; mv sub moved");
    let moved = now(&ran, "moved/deep/.envrc");
    assert_eq!(fs::read_to_string(lab.at(moved)).unwrap(), "mine\n");
    assert!(lab.at(".envrc").exists() && !lab.at(".mcp.json").exists(), "{ran}");
}

#[test]
fn a_guard_that_is_killed_is_told_and_is_no_cancellation() {
    let folder = tempfile::tempdir().unwrap();
    let helper = folder.path().join("helper");
    fs::copy(env!("CARGO_BIN_EXE_tooltape-sandbox"), &helper).unwrap();
    let sandbox = Sandbox::new(Helper::new(&helper, [""; 0])).unwrap();
    let ws = tempfile::tempdir().unwrap();
    let files = Workspace::open(ws.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let script = "mkdir .git; echo made; sleep 1000";
    let command = Command::new(["/bin/sh", "-c", script]).files(Files::Write);
    let mut process = sandbox.start(Some(&files), command).unwrap();
    assert!(runtime.block_on(process.next()).is_some());
    let guard = [helper.to_str().unwrap(), "guard", ""].join("\0");
    let pids = fs::read_dir("/proc").unwrap().flatten();
    let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_guard = |pid: &i32| {
        fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|found| found == guard.as_bytes())
    };
    let pid = pids.into_iter().find(is_guard).and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::KILL).unwrap();
    match runtime.block_on(process.end()) {
        Err(SandboxError::Lost(why)) => {
            assert!(why.contains("signal: 9") && why.contains("protected names"), "{why}");
        }
        ended => panic!("{ended:?}"),
    }
}

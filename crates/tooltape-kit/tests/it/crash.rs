//! FS-14: a call is cut short, or the disk fails, at every system call that touches the files.
#![cfg(target_os = "linux")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use tempfile::TempDir;
use tooltape::{Executed, Random, Run};

use crate::users::as_each;
use crate::world::{call, code, run_in};

/// The variable that says where the call is made, and which.
const CALL: &str = "TOOLTAPE_CALL_CUT_SHORT";
/// Stands for no case, but for a file that is written in place.
const CONTROL: usize = 99;
/// The mode of the files, which is no usual one.
const MODE: u32 = 0o640;
/// System calls that can change a file, or come before such a one.
const SYSCALLS: &str = "openat,openat2,write,writev,pwrite64,ftruncate,fsync,fdatasync,rename,\
                        renameat,renameat2,fchmod,fchmodat,fchown,unlink,unlinkat,link,linkat,\
                        mkdirat,fcntl";
/// What happens at one of them.
const FAULTS: [&str; 3] = ["signal=SIGKILL", "error=EIO", "error=ENOSPC"];
/// What is between a call and its files that is not worth a case: it cannot change anything.
const HARMLESS: &str = "fcntl";

/// A call, and what its files hold before and after.
struct Case {
    tool: &'static str,
    args: &'static str,
    files: &'static [(&'static str, Option<&'static str>, Option<&'static str>)],
}

const CASES: [Case; 5] = [
    Case {
        tool: "edit_file",
        args: r#"{"path":"a.txt","edits":[{"old":"one","new":"two"}]}"#,
        files: &[("a.txt", Some("one\n"), Some("two\n"))],
    },
    Case {
        tool: "write_file",
        args: r#"{"path":"a.txt","content":"two\n","overwrite":true}"#,
        files: &[("a.txt", Some("one\n"), Some("two\n"))],
    },
    Case {
        tool: "write_file",
        args: r#"{"path":"dir/a.txt","content":"two\n","create_dirs":true}"#,
        files: &[("dir/a.txt", None, Some("two\n"))],
    },
    Case {
        tool: "move_file",
        args: r#"{"from":"a.txt","to":"b.txt"}"#,
        files: &[("a.txt", Some("one\n"), None), ("b.txt", None, Some("one\n"))],
    },
    Case {
        tool: "apply_patch",
        args: "{\"paths\":[\"a.txt\",\"b.txt\",\"c.txt\"],\"patch\":\"\
               --- a/a.txt\\n+++ b/a.txt\\n@@ -1 +1 @@\\n-one\\n+two\\n\
               --- /dev/null\\n+++ b/b.txt\\n@@ -0,0 +1 @@\\n+new\\n\
               --- a/c.txt\\n+++ /dev/null\\n@@ -1 +0,0 @@\\n-old\\n\"}",
        files: &[
            ("a.txt", Some("one\n"), Some("two\n")),
            ("b.txt", None, Some("new\n")),
            ("c.txt", Some("old\n"), None),
        ],
    },
];

/// A workspace as it is before a call.
fn prepared(case: &Case) -> TempDir {
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    fs::create_dir(folder.path().join("ws")).unwrap();
    for (name, before, _) in case.files {
        if let Some(before) = before {
            let path = folder.path().join("ws").join(name);
            fs::write(&path, before).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(MODE)).unwrap();
        }
    }
    folder
}

/// A run whose unfinished files have the same names each time.
fn run(folder: &Path) -> Run {
    run_in(&folder.join("ws")).random(Random::seeded([7; 32]))
}

/// The call that is cut short. By itself it succeeds, and does what it says.
#[test]
fn a_call_that_nothing_cuts_short_leaves_the_new_content() {
    if let Ok(place) = std::env::var(CALL) {
        let (at, folder) = place.split_once(' ').unwrap();
        let at = at.parse::<usize>().unwrap();
        if at == CONTROL {
            return fs::write(Path::new(folder).join("ws/a.txt"), "two\n").unwrap();
        }
        let case = &CASES[at];
        let reply = call(&run(Path::new(folder)), case.tool, case.args);
        let told = format!("{:?} {} {}", reply.executed, code(&reply), reply.text());
        fs::write(Path::new(folder).join("reply"), told).unwrap();
        return;
    }
    for case in &CASES {
        let folder = prepared(case);
        let reply = call(&run(folder.path()), case.tool, case.args);
        assert_eq!(reply.executed, Executed::Executed, "{} {}", case.tool, reply.text());
        assert_eq!(state(case, folder.path()), State { old: 0, new: case.files.len(), left: 0 });
    }
}

/// How many files hold the old and the new content, and how many are left that are neither.
#[derive(Debug, PartialEq, Eq)]
struct State {
    old: usize,
    new: usize,
    left: usize,
}

/// Looks at the files. A mixture, or another mode, is a failure at once.
fn state(case: &Case, folder: &Path) -> State {
    let mut state = State { old: 0, new: 0, left: 0 };
    for (name, before, after) in case.files {
        let path = folder.join("ws").join(name);
        let text = fs::read_to_string(&path).ok();
        let text = text.as_deref();
        assert!(text == *before || text == *after, "{} {name}: a mixture: {text:?}", case.tool);
        state.old += usize::from(text == *before);
        state.new += usize::from(text == *after);
        if text.is_some() && (before.is_some() || case.tool == "move_file") {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            assert_eq!(mode, MODE, "{} {name}", case.tool);
        }
    }
    for folder in [folder.join("ws"), folder.join("ws/dir")] {
        for entry in fs::read_dir(folder).into_iter().flatten() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let known = case.files.iter().any(|(file, ..)| file.ends_with(&name));
            assert!(known || name == "dir" || name.starts_with(".unfinished-"), "{name}");
            state.left += usize::from(name.starts_with(".unfinished-"));
        }
    }
    state
}

/// Makes a call under `strace`, in a process of its own.
fn traced(at: usize, folder: &Path, options: &[String]) {
    let status = Command::new("strace")
        .args(["-f", "-qq", "-y"])
        .args(options)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "crash::a_call_that_nothing_cuts_short_leaves_the_new_content"])
        .env(CALL, format!("{at} {}", folder.display()))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.expect("`strace` is installed");
}

/// The system calls of a call that touch its files, by name, and the paths that they touch.
fn observed(at: usize) -> (BTreeMap<String, usize>, BTreeSet<String>) {
    let folder = prepared(&CASES[at]);
    let log = folder.path().join("log");
    let trace = format!("trace={SYSCALLS}");
    traced(at, folder.path(), &["-o".into(), log.display().to_string(), "-e".into(), trace]);
    assert!(folder.path().join("reply").exists(), "the call was traced to its end");
    let workspace = folder.path().join("ws").display().to_string();
    let (mut counts, mut paths) = (BTreeMap::new(), BTreeSet::new());
    for line in fs::read_to_string(&log).unwrap().lines().filter(|line| line.contains(&workspace)) {
        let Some((_, line)) = line.split_once(' ') else { continue };
        let Some((name, args)) = line.trim_start().split_once('(') else { continue };
        *counts.entry(name.to_owned()).or_default() += 1;
        for (from, _) in args.match_indices(&workspace) {
            let path = args[from..].split(['>', '"']).next().unwrap_or_default();
            paths.insert(path[workspace.len()..].to_owned());
        }
    }
    counts.remove(HARMLESS);
    (counts, paths)
}

#[test]
fn a_crash_at_any_system_call_leaves_the_old_content_or_the_new() {
    let name = "crash::a_crash_at_any_system_call_leaves_the_old_content_or_the_new";
    as_each(name, |user| {
        let points = crashed();
        eprintln!("fs-14: {points} crashes and faults as {user}, each the old content or the new");
    });
}

/// Makes every call with every fault at every system call, and says how often.
fn crashed() -> usize {
    let mut points = 0;
    for (at, case) in CASES.iter().enumerate() {
        let (counts, paths) = observed(at);
        assert!(counts.keys().any(|name| name.starts_with("rename")), "{counts:?}");
        let mut seen = BTreeSet::new();
        for (name, count) in &counts {
            for when in 1..=*count {
                for fault in FAULTS {
                    let folder = prepared(case);
                    let injected = format!("inject={name}:{fault}:when={when}");
                    let mut options: Vec<String> = vec!["-o".into(), "/dev/null".into()];
                    options.extend(["-e".into(), format!("trace={name}"), "-e".into(), injected]);
                    for path in &paths {
                        let path = format!("{}{path}", folder.path().join("ws").display());
                        options.extend(["-P".into(), path]);
                    }
                    traced(at, folder.path(), &options);
                    seen.insert(judged(case, folder.path(), name, fault, when));
                    points += 1;
                }
            }
        }
        assert!(seen.contains("old") && seen.contains("new"), "{}: {seen:?}", case.tool);
    }
    points
}

#[test]
fn a_patch_that_can_neither_go_on_nor_be_taken_back_is_in_doubt() {
    let (at, folder) = (CASES.len() - 1, prepared(&CASES[CASES.len() - 1]));
    let (_, paths) = observed(at);
    let injected = "inject=renameat2:error=EIO:when=2+";
    let options = ["-o", "/dev/null", "-e", "trace=renameat2", "-e", injected];
    let mut options: Vec<String> = options.map(str::to_owned).into();
    for path in &paths {
        options.extend(["-P".into(), format!("{}{path}", folder.path().join("ws").display())]);
    }
    traced(at, folder.path(), &options);
    let reply = fs::read_to_string(folder.path().join("reply")).unwrap();
    assert!(reply.starts_with("Unknown in_doubt"), "{reply}");
    assert!(reply.contains("`a.txt`, whose old content is in `.unfinished-"), "{reply}");
    let State { old, new, left } = state(&CASES[at], folder.path());
    assert_eq!((old, new), (2, 1), "the first file is new, and each is whole");
    assert_eq!(left, 1, "what the first one held is still there");
}

#[test]
fn the_usual_way_to_write_leaves_neither_when_it_is_cut_short() {
    let folder = prepared(&CASES[0]);
    let path = folder.path().join("ws/a.txt");
    let options = ["-o", "/dev/null", "-e", "trace=write", "-e"].map(str::to_owned);
    let injected = ["inject=write:signal=SIGKILL:when=1", "-P", path.to_str().unwrap()];
    traced(CONTROL, folder.path(), &[&options[..], &injected.map(str::to_owned)].concat());
    assert_eq!(fs::read_to_string(&path).unwrap(), "", "neither `one` nor `two`");
}

/// Checks what a fault left behind, and says which content that is.
fn judged(case: &Case, folder: &Path, name: &str, fault: &str, when: usize) -> &'static str {
    let what = format!("{} {name} {fault} {when}", case.tool);
    let State { old, new, left } = state(case, folder);
    let reply = fs::read_to_string(folder.join("reply")).unwrap_or_default();
    let all = case.files.len();
    if reply.starts_with("NotExecuted") {
        assert_eq!(old, all, "{what}: {reply}");
        assert!(left == 0 || name.starts_with("unlink"), "{what}: {left} left, {reply}");
    }
    if reply.starts_with("Executed ok") {
        assert_eq!(new, all, "{what}: {reply}");
    }
    if (case.tool, name, fault) == ("edit_file", "write", FAULTS[0]) {
        // FS-10: nobody else reads what is not finished.
        let mut names = fs::read_dir(folder.join("ws")).unwrap().map(|entry| entry.unwrap());
        let name = |entry: &fs::DirEntry| entry.file_name().into_string().unwrap();
        let left = names.find(|entry| name(entry).starts_with(".unfinished-")).unwrap();
        assert_eq!(left.metadata().unwrap().permissions().mode() & 0o7777, 0o600, "{what}");
    }
    // Whatever is left does not stand in the way of the next call.
    let (path, content) = ("next.txt", "next\n");
    let args = format!(r#"{{"path":"{path}","content":"next\n"}}"#);
    assert_eq!(code(&call(&run(folder), "write_file", &args)), "ok", "{what}");
    let next: PathBuf = folder.join("ws").join(path);
    assert_eq!(fs::read_to_string(next).unwrap(), content, "{what}");
    match (old == all, new == all) {
        (true, _) => "old",
        (false, true) => "new",
        (false, false) => "some of each",
    }
}

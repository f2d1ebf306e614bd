//! EX-08: however a call ends, nothing of it is left.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command as Program, Stdio};
use std::time::{Duration, Instant};

use tooltape_kit::{Command, Files, Helper, ProcessLimits, Sandbox, Status, Workspace};

use super::scene::survivors;

/// Names the folder in which a copy of this test starts processes until it is killed.
const KILLED: &str = "TOOLTAPE_TEST_KILLED";
/// The boxes of each runtime that is killed.
const BOXES: usize = 5;
/// Runtimes that are killed.
const CRASHES: usize = 50;
/// Processes that are killed by a limit or because nobody wants them any more.
const STOPPED: usize = 250;
/// The time in which all must be gone.
const GONE_WALL: Duration = Duration::from_secs(10);

/// Children that do not want to end.
const STUBBORN: &str = "trap '' TERM HUP INT QUIT
perl -e '$SIG{$_} = \"IGNORE\" for qw(TERM HUP INT QUIT); sleep 1000' MARKER &
setsid perl -e 'sleep 1000' MARKER >/dev/null 2>&1 </dev/null &
(setsid sh -c '(nohup perl -e \"sleep 1000\" MARKER >/dev/null 2>&1 </dev/null &)' &)
perl -e 'kill STOP => $$; sleep 1000' MARKER &
echo started
wait; sleep 1000";

/// A sandbox whose every program has the folder's name in its arguments.
fn marked(folder: &Path) -> Sandbox {
    let copied = |from: &str, name: &str| -> PathBuf {
        let to = folder.join(name);
        if !to.exists() {
            fs::copy(from, &to).unwrap();
        }
        to
    };
    let helper = copied(env!("CARGO_BIN_EXE_tooltape-sandbox"), "helper");
    let bwrap = copied("/usr/bin/bwrap", "bwrap");
    Sandbox::with_bwrap(Helper::new(helper, [""; 0]), bwrap).unwrap()
}

fn stubborn(marker: &Path, limits: ProcessLimits) -> Command {
    let script = STUBBORN.replace("MARKER", marker.to_str().unwrap());
    Command::new(["/bin/sh", "-c", &script]).files(Files::Write).limits(limits)
}

/// Waits until nothing is left of what has a folder's name in its arguments.
fn assert_gone(folder: &Path) {
    let begun = Instant::now();
    loop {
        let left = survivors(folder.to_str().unwrap());
        if left.is_empty() {
            return;
        }
        assert!(begun.elapsed() < GONE_WALL, "{left:?} survived");
        std::thread::yield_now();
    }
}

#[test]
fn nothing_survives_a_call_that_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let sandbox = marked(folder.path());
    let ws = tempfile::tempdir().unwrap();
    let files = Workspace::open(ws.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for number in 0..STOPPED {
        let short = Duration::from_millis(number as u64 % 97);
        let wall = if number % 2 == 0 { short } else { Duration::from_secs(60) };
        let limits = ProcessLimits { wall, ..ProcessLimits::default() };
        let marker = folder.path().join(format!("number-{number}-"));
        let mut process = sandbox.start(Some(&files), stubborn(&marker, limits)).unwrap();
        match number % 4 {
            0 | 2 => {
                // A process that is not up yet has no reason to end but this one.
                let ended = runtime.block_on(process.end()).unwrap();
                assert!(matches!(ended.status, Status::Exceeded(_)), "{ended:?}");
                assert_eq!(survivors(marker.to_str().unwrap()), [0; 0]);
            }
            1 => {
                assert!(runtime.block_on(process.next()).is_some());
                drop(process);
            }
            _ => drop(process),
        }
    }
    assert_gone(folder.path());
    println!("ex-08: {STOPPED} processes stopped, 0 survivors");
}

#[test]
fn nothing_survives_a_runtime_that_is_killed() {
    if let Ok(folder) = std::env::var(KILLED) {
        return start_until_killed(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    for number in 0..CRASHES {
        let mut runtime = Program::new(std::env::current_exe().unwrap())
            .args(["--exact", "sandbox::kills::nothing_survives_a_runtime_that_is_killed"])
            .arg("--nocapture")
            .env(KILLED, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(runtime.stdout.take().unwrap()).lines();
        // Some are killed while boxes are being built, some when all are up.
        let ups = number % (BOXES + 1);
        let mut seen = 0;
        while seen <= ups {
            let line = lines.next().expect("the runtime says what it does").unwrap();
            seen += usize::from(line.contains("starting") || line.contains("is up"));
        }
        runtime.kill().unwrap();
        runtime.wait().unwrap();
        assert_gone(folder.path());
    }
    // What they had planted was found even though nobody waited for it.
    let (planted, set_aside) = planted(folder.path());
    assert!(planted == 0 && set_aside > 0, "{planted} planted, {set_aside} set aside");
    println!("ex-08: {CRASHES} runtimes with {BOXES} boxes each killed, 0 survivors");
}

/// How many workspaces have a repository that was planted, and how many one that was renamed.
fn planted(folder: &Path) -> (usize, usize) {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let workspaces: Vec<_> = entries.filter(|path| path.is_dir()).collect();
    let with = |start: &str| {
        let has = |path: &PathBuf| {
            let names = fs::read_dir(path.join("planted")).into_iter().flatten();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            names.into_iter().any(|name| name.starts_with(start))
        };
        workspaces.iter().filter(|path| has(path)).count()
    };
    (with(".git"), with("set-aside."))
}

fn start_until_killed(folder: &Path) {
    let sandbox = marked(folder);
    let ws = tempfile::tempdir_in(folder).unwrap();
    let files = Workspace::open(ws.path()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    println!("starting");
    let start = |_| {
        let mut command = stubborn(folder, ProcessLimits::default());
        command.argv[2].insert_str(0, "mkdir -p planted/.git\n");
        sandbox.start(Some(&files), command).unwrap()
    };
    let mut processes: Vec<_> = (0..BOXES).map(start).collect();
    for process in &mut processes {
        runtime.block_on(process.next());
        println!("one is up");
    }
    runtime.block_on(std::future::pending::<()>());
}

//! EX-09: whatever a process uses up, it is stopped in time, and nobody else is troubled.

use std::fs;
use std::time::{Duration, Instant};

use tooltape_kit::{Command, Ended, Files, Limit, ProcessLimits, Status, Workspace};

use super::lab::sandbox;
use super::scene::survivors;

/// The most memory that the runtime may need for a process, in KiB.
const OWN_KIB_MAX: u64 = 64 << 10;

/// Runs a command line within limits.
fn run(command: &str, limits: ProcessLimits) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    let files = Workspace::open(folder.path()).unwrap();
    let command = Command::new(["/bin/sh", "-c", command]).files(Files::Write).limits(limits);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let process = sandbox().start(Some(&files), command).unwrap();
    runtime.block_on(process.end()).unwrap()
}

fn limits() -> ProcessLimits {
    ProcessLimits { wall: Duration::from_secs(30), ..ProcessLimits::default() }
}

/// The memory of this process, in KiB.
fn own_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn time_is_bounded() {
    let wall = Duration::from_millis(500);
    for command in [
        "sleep 1000",
        "while :; do :; done",
        "cat",
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        "kill -STOP $$",
        "while :; do echo x; sleep 0.05; done",
        "setsid sleep 1000; sleep 1000",
    ] {
        let begun = Instant::now();
        // `cat` has nothing to read, so it ends by itself.
        let command = format!("{command}; sleep 1000");
        let ended = run(&command, ProcessLimits { wall, ..limits() });
        assert_eq!(ended.status, Status::Exceeded(Limit::Wall), "{command}");
        let took = begun.elapsed();
        assert!(took >= wall, "{command}: {took:?}");
        // The goal is 1.2 times and 100 ms; a busy machine may need a while to start.
        assert!(took < wall * 2 + Duration::from_secs(2), "{command}: {took:?}");
    }
    let idle = Duration::from_millis(300);
    let ended = run("echo x; sleep 1000", ProcessLimits { idle, ..limits() });
    assert_eq!((ended.status, ended.stdout.text()), (Status::Exceeded(Limit::Idle), "x\n".into()));
    let cpu = Duration::from_secs(1);
    let ended = run("while :; do :; done", ProcessLimits { cpu, ..limits() });
    assert_eq!(ended.status, Status::Signalled(9), "one second of computing");
}

#[test]
fn output_is_bounded_and_costs_the_runtime_nothing() {
    let before = own_kib();
    let few = ProcessLimits { output_bytes: 4 << 20, kept_bytes: 1_000, ..limits() };
    for (command, stream) in [
        ("yes", 1),
        ("yes >&2", 2),
        ("cat /dev/zero", 1),
        ("tr '\\0' x < /dev/zero >&2", 2),
        ("perl -e 'while (1) { print STDOUT \"a\" x 65536; print STDERR \"b\" }'", 1),
    ] {
        let ended = run(command, few.clone());
        assert_eq!(ended.status, Status::Exceeded(Limit::Output), "{command}");
        let kept = if stream == 1 { &ended.stdout } else { &ended.stderr };
        assert_eq!((kept.total_bytes(), kept.bytes().len()), (4 << 20, 1_000), "{command}");
        assert!(kept.is_truncated() && kept.text().contains("bytes left out]"), "{command}");
    }
    assert!(own_kib() < before + OWN_KIB_MAX, "{before} KiB became {} KiB", own_kib());
}

#[test]
fn memory_is_bounded_for_one_process_and_for_all_together() {
    let memory_bytes = 256 << 20;
    let few = ProcessLimits { memory_bytes, ..limits() };
    let ended = run("perl -e 'my $x = \"a\" x (64 << 30); print 1'", few.clone());
    assert!(ended.status != Status::Exited(0) && ended.stdout.text().is_empty(), "{ended:?}");
    let each = "perl -e 'my $x = \"a\" x (60 << 20); sleep 100' &";
    let ended = run(&format!("{} wait", each.repeat(6)), few.clone());
    assert_eq!(ended.status, Status::Exceeded(Limit::Memory));
    // Files in memory are bounded by themselves.
    let few = ProcessLimits { scratch_bytes: 8 << 20, ..few };
    let ended = run("head -c 64M /dev/zero > /tmp/x; head -c 99M /dev/zero > /dev/shm/x", few);
    assert!(ended.stderr.text().contains("No space left on device"), "{ended:?}");
    assert_eq!(ended.status, Status::Exited(1));
}

#[test]
fn no_memory_is_held_that_belongs_to_no_process() {
    let few = ProcessLimits { memory_bytes: 64 << 20, ..limits() };
    let mib = 256;
    // Files in memory that nobody maps, and segments that nobody has attached.
    let file = format!(
        "my $fd = syscall({}, my $n = \"x\", 0); open(my $f, \">&=\", $fd) or die $!; \
         print $f \"x\" x (1 << 20) for 1..{mib}; close $f",
        libc::SYS_memfd_create
    );
    let segments = format!(
        "for (1..{mib}) {{ my $id = shmget(0, 1 << 20, 01600) // die $!; \
         shmwrite($id, \"x\" x (1 << 20), 0, 1 << 20) or die $! }}"
    );
    let secret = format!("syscall({}, 0) < 0 and die $!", libc::SYS_memfd_secret);
    let queue = "msgget(0, 01600) // die $!".to_owned();
    for script in [file, segments, secret, queue] {
        let ended = run(&format!("perl -e '{script}'"), few.clone());
        assert_ne!(ended.status, Status::Exited(0), "{script}: {ended:?}");
    }
    // Whoever would like some does without.
    for (command, expected) in [
        ("perl -e 'print 1'", "1"),
        ("awk 'BEGIN { print 1 }'", "1\n"),
        ("echo x | git hash-object --stdin", "587be6b4c3f93f93c489c0111bba5596147a26cb\n"),
    ] {
        assert_eq!(run(command, limits()).stdout.text(), expected, "{command}");
    }
}

#[test]
fn no_call_makes_a_file_that_runs_as_its_owner() {
    for (mode, is_made) in [("04755", false), ("02755", false), ("0755", true)] {
        let modes = format!("umask 0; my ($n, $m) = (\"x\", 0100000 | {mode});");
        let unnamed = libc::O_TMPFILE | libc::O_RDWR;
        let at = libc::AT_FDCWD;
        let mut scripts = vec![
            format!("{modes} syscall({}, {at}, $n, $m, 0) and die $!", libc::SYS_mknodat),
            format!("{modes} sysopen(my $f, \".\", {unnamed}, {mode}) or die $!"),
        ];
        #[cfg(target_arch = "x86_64")]
        scripts.push(format!("{modes} syscall({}, $n, $m, 0) and die $!", libc::SYS_mknod));
        for script in &scripts {
            let ended = run(&format!("perl -e '{script}'"), limits());
            assert_eq!(ended.status == Status::Exited(0), is_made, "{script}: {ended:?}");
        }
    }
}

#[test]
fn processes_and_threads_are_bounded() {
    let few = ProcessLimits { processes: 64, ..limits() };
    let bombs = [
        "f() { f | f & }; f; sleep 1000",
        "perl -e 'while (1) { fork }'",
        "perl -e 'while (1) { my $p = fork; exit if $p; }' fork-bomb-marker",
        "for i in $(seq 200); do sleep 1000 & done; wait",
    ];
    for bomb in bombs {
        let begun = Instant::now();
        let ended = run(bomb, ProcessLimits { wall: Duration::from_secs(5), ..few.clone() });
        let by_root = Status::Exceeded(Limit::Processes);
        // Where the kernel counts, a fork fails, and what is left is idle or ends.
        let is_held = ended.status == by_root
            || matches!(ended.status, Status::Exited(_) | Status::Exceeded(Limit::Wall));
        assert!(is_held, "{bomb}: {:?}", ended.status);
        assert!(begun.elapsed() < Duration::from_secs(20), "{bomb}: {:?}", begun.elapsed());
        println!("ex-09: {bomb}: {:?}", ended.status);
    }
    assert_eq!(survivors("fork-bomb-marker"), [0; 0]);
}

#[test]
fn files_are_bounded() {
    let few = ProcessLimits { file_bytes: 1 << 20, open_files: 32, ..limits() };
    let ended = run("head -c 4M /dev/zero > big; wc -c < big", few.clone());
    assert_eq!(ended.stdout.text().trim(), "1048576", "{ended:?}");
    let opened = "perl -e 'my @f; while (open(my $f, \"<\", \"/dev/null\")) { push @f, $f } \
                  print scalar(@f) < 32 ? \"held\" : \"free\"'";
    assert_eq!(run(opened, few).stdout.text(), "held");
}

#[test]
fn nothing_to_read_is_an_end_and_not_a_wait() {
    let ended = run("cat; read x; echo $?", limits());
    assert_eq!((ended.status, ended.stdout.text()), (Status::Exited(0), "1\n".into()));
}

//! The helper inside the box: its first process, which puts up the last walls and watches.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, open};
use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open,
    set_dumpable_behavior, wait,
};

use super::command::{Command as Asked, Files, MEMORY_BYTES_MIN, ProcessLimits};
use super::egress::port;
use super::error::Part;
use super::protocol::{Held, Note, PATH, Request, WORKSPACE};
use super::{Limit, overlay, walls};

/// How often the use of memory and processes is looked at.
const TICK: Duration = Duration::from_millis(20);
/// The most bytes of the path that a shell leaves behind.
const CWD_BYTES_MAX: u64 = 4_096;
/// How often all other processes are killed, where new ones come up.
const ROUNDS_MAX: usize = 10_000;
/// Where `/proc/PID/stat` has the number of threads, counted after the name of the program.
const THREADS_FIELD: usize = 17;
/// Where it has the pages of memory that are in use.
const PAGES_FIELD: usize = 21;
/// The bytes of a page of memory, which is never larger for what is counted here.
const PAGE_BYTES: u64 = 4_096;
/// The variables of every process.
const VARIABLES: [(&str, &str); 8] = [
    ("PATH", PATH),
    ("HOME", "/tmp"),
    ("TMPDIR", "/tmp"),
    ("USER", "user"),
    ("LOGNAME", "user"),
    ("LANG", "C.UTF-8"),
    ("TERM", "dumb"),
    ("SHELL", "/bin/sh"),
];

/// Runs the process; the arguments are the numbers of what was handed down.
pub(super) fn main(request: &str, status: &str, egress: Option<&str>) -> ExitCode {
    let handed = |number: &str| PathBuf::from(format!("/proc/self/fd/{number}"));
    let opened = File::open(handed(request)).and_then(Request::read);
    let status = File::options().write(true).open(handed(status));
    let (Ok(request), Ok(status)) = (opened, status) else { return ExitCode::FAILURE };
    run(&request, &status, egress).unwrap_or_else(|note| note).say(&status);
    if let Some(cwd) = request.reports_cwd.then(reported_cwd).flatten() {
        Note::Cwd(cwd).say(&status);
    }
    if request.is_preview {
        end_others();
        let (changes, is_whole) = overlay::changes();
        Note::Changes(changes, is_whole).say(&status);
    }
    // All others end with their first process.
    ExitCode::SUCCESS
}

fn run(request: &Request, status: &File, egress: Option<&str>) -> Result<Note, Note> {
    let failed = |part| move |why: String| Note::Failed { part, why };
    egress
        .map_or(Ok(()), port::hand_out)
        .map_err(|err| failed(Part::Helper)(format!("no way out: {err}")))?;
    close_inherited(status).map_err(|err| failed(Part::Helper)(err.to_string()))?;
    // Nobody reads or writes what is in here, though all have one user.
    set_dumpable_behavior(DumpableBehavior::NotDumpable)
        .map_err(|err| failed(Part::Helper)(err.to_string()))?;
    let is_counted = walls::count(request.limits.processes).map_err(failed(Part::Limits))?;
    if request.is_preview {
        overlay::cover().map_err(failed(Part::Namespaces))?;
    }
    // Whoever is root outside could write the machine's settings, privileges or not.
    walls::give_up().map_err(failed(Part::Namespaces))?;
    walls::limits(&request.limits).map_err(|err| failed(Part::Limits)(err.to_string()))?;
    let landlock =
        walls::landlock(request.files, &request.exposed).map_err(failed(Part::Landlock))?;
    walls::seccomp().map_err(failed(Part::Seccomp))?;
    Note::Ready(Held { landlock, is_counted }).say(status);
    let unstarted = |err: io::Error| Note::Unstarted(err.to_string());
    let pid = start(request).map_err(unstarted)?;
    watch(pid, &request.limits).map_err(|err| Note::Lost(err.to_string()))
}

/// Closes every file that was handed down, by accident too, but for the three and this one.
#[expect(unsafe_code, reason = "a file is closed by its number, whoever opened it")]
fn close_inherited(status: &File) -> io::Result<()> {
    const FIRST: libc::c_uint = 3;
    let kept = status.as_raw_fd().unsigned_abs();
    for (first, last) in [(FIRST, kept - 1), (kept + 1, libc::c_uint::MAX)] {
        // SAFETY: no other file of this process has an owner that would use or close it later.
        let closed = if first <= last { unsafe { libc::close_range(first, last, 0) } } else { 0 };
        if closed != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

fn start(request: &Request) -> io::Result<Pid> {
    let folder = match request.files {
        Files::None => PathBuf::from("/tmp"),
        Files::Read | Files::Write => Path::new(WORKSPACE).join(&request.cwd),
    };
    let [program, args @ ..] = &request.argv[..] else { return Err(Errno::INVAL.into()) };
    std::env::set_current_dir(&folder)
        .map_err(|err| io::Error::new(err.kind(), format!("`{}`: {err}", request.cwd)))?;
    let child = Command::new(resolved(program)?)
        .arg0(program)
        .args(args)
        .env_clear()
        .envs(VARIABLES)
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .env("PWD", &folder)
        .spawn()?;
    Ok(Pid::from_child(&child))
}

/// The program itself, looked for once and never where the process starts.
fn resolved(program: &str) -> io::Result<PathBuf> {
    if program.contains('/') {
        return Ok(program.into());
    }
    let found = PATH.split(':').map(|folder| Path::new(folder).join(program));
    let found = found.into_iter().find(|path| path.is_file());
    found.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "no such program in `PATH`"))
}

/// Waits for the process, and meanwhile takes in who lost its parent and counts what all use.
fn watch(pid: Pid, limits: &ProcessLimits) -> io::Result<Note> {
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let tick = Timespec::try_from(TICK).expect("a tick is short");
    loop {
        match poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&tick)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Ok(Some((dead, status))) if dead == pid => return Ok(note(status.as_raw())),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(Errno::CHILD) => break,
                Err(err) => return Err(err.into()),
            }
        }
        if let Some(limit) = exceeded(limits)? {
            return Ok(Note::Exceeded(limit));
        }
    }
}

/// Ends all other processes, so that what they have changed stays as it is.
fn end_others() {
    for _ in 0..ROUNDS_MAX {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        for pid in pids.filter(|pid| *pid != 1).filter_map(Pid::from_raw) {
            // It may be gone already.
            let _ = kill_process(pid, Signal::KILL);
        }
        loop {
            match wait(WaitOptions::NOHANG) {
                Err(Errno::CHILD) => return,
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) | Err(_) => break,
            }
        }
    }
}

/// The limit that all processes of the box exceed together, if they do.
fn exceeded(limits: &ProcessLimits) -> io::Result<Option<Limit>> {
    let is_process = |name: &OsString| name.as_bytes().first().is_some_and(u8::is_ascii_digit);
    // Counted first and not to the end: who is one of many has little time for it.
    let most = limits.processes as usize;
    let entries = fs::read_dir("/proc")?.flatten().map(|entry| entry.file_name());
    let processes: Vec<_> = entries.filter(is_process).take(most + 1).collect();
    if processes.len() > most {
        return Ok(Some(Limit::Processes));
    }
    let (mut tasks, mut bytes) = (0, 0);
    for process in processes {
        // What ended meanwhile uses nothing.
        let stat = fs::read_to_string(Path::new("/proc").join(process).join("stat"));
        let stat = stat.unwrap_or_default();
        // The name of the program comes before, and may have anything in it.
        let fields: Vec<_> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        let field = |at: usize| fields.get(at).and_then(|field| field.parse::<u64>().ok());
        tasks += field(THREADS_FIELD).unwrap_or(0);
        bytes += field(PAGES_FIELD).unwrap_or(0) * PAGE_BYTES;
    }
    if tasks > most as u64 {
        return Ok(Some(Limit::Processes));
    }
    Ok((bytes > limits.memory_bytes.max(MEMORY_BYTES_MIN)).then_some(Limit::Memory))
}

fn note(status: i32) -> Note {
    let status = ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => Note::Exited(code),
        (None, signal) => Note::Signalled(signal.unwrap_or(0)),
    }
}

/// Where a shell says that it ended: a folder of the workspace, or nowhere.
fn reported_cwd() -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(open(Asked::CWD_FILE, flags, Mode::empty()).ok()?);
    let mut text = String::new();
    file.take(CWD_BYTES_MAX).read_to_string(&mut text).ok()?;
    let path = text.strip_suffix('\n').unwrap_or(&text).strip_prefix(WORKSPACE)?;
    match path {
        "" => Some(".".to_owned()),
        path => path.strip_prefix('/').map(str::to_owned),
    }
}

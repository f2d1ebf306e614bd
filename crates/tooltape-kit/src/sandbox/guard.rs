//! The helper outside the box: it outlives whoever started it, and leaves nothing behind.

use std::fs;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, getpid, kill_process, pidfd_open, set_child_subreaper,
    wait,
};

use super::command::Files;
use super::protocol::{HELPER, Held, INIT, Note, PATH, Request};
use super::room::Room;
use super::sweep::Sweep;

/// The files that one message hands over.
const HANDED_MAX: usize = 5;

/// Runs one process, and ends after all that it has started.
pub(super) fn main() -> ExitCode {
    match guard() {
        Ok(()) => ExitCode::SUCCESS,
        Err(err) => {
            // The sandbox reads it where nothing was said in its own words.
            let _ = io::Write::write_all(&mut io::stderr(), format!("{err}\n").as_bytes());
            ExitCode::FAILURE
        }
    }
}

/// What was handed over.
struct Handed {
    request: OwnedFd,
    stdin: OwnedFd,
    status: OwnedFd,
    egress: Option<OwnedFd>,
    root: Option<OwnedFd>,
}

fn guard() -> io::Result<()> {
    // Whoever loses its parent becomes ours, so that nobody gets away.
    set_child_subreaper(Some(getpid()))?;
    let (request, handed) = receive()?;
    let say = handed.status.try_clone().map(File::from)?;
    let (sweep, held) = match (&handed.root, &request.bwrap) {
        (Some(root), Some(_)) if request.files == Files::Write && !request.is_preview => {
            match Sweep::before(root.try_clone()?) {
                Ok((sweep, held)) => (Some(sweep), held),
                Err(why) => {
                    Note::Unusable(why).say(&say);
                    return Ok(());
                }
            }
        }
        _ => (None, Vec::new()),
    };
    let started = match &request.bwrap {
        Some(bwrap) => {
            let Handed { request: text, stdin, status, egress, root } = handed;
            let mut room = Room::new(&request, root, held)?;
            let inherited = [Some(text), Some(status), egress].into_iter().flatten();
            let numbers: Vec<String> =
                inherited.map(|file| room.inherit(file)).collect::<io::Result<_>>()?;
            boxed(bwrap, &request, &room, &numbers, stdin)
        }
        None => bare(&request, handed),
    };
    let is_bare = request.bwrap.is_none();
    match started {
        Ok(child) => {
            if is_bare {
                Note::Ready(Held::default()).say(&say);
            }
            let ended = watch(child)?;
            if let (true, Some(note)) = (is_bare, ended) {
                note.say(&say);
            }
        }
        Err(err) if is_bare => Note::Unstarted(err.to_string()).say(&say),
        Err(err) => return Err(err),
    }
    if let Some(set_aside) = sweep.map(|sweep| sweep.after()).filter(|found| !found.is_empty()) {
        Note::SetAside(set_aside).say(&say);
    }
    Ok(())
}

fn receive() -> io::Result<(Request, Handed)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_MAX))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut byte = [0];
    let flags = RecvFlags::CMSG_CLOEXEC;
    recvmsg(rustix::stdio::stdin(), &mut [IoSliceMut::new(&mut byte)], &mut control, flags)?;
    let rights = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    let mut files = rights.flatten();
    let mut next = || files.next().ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof));
    let (text, stdin, status) = (next()?, next()?, next()?);
    let request = Request::read(File::from(text.try_clone()?))?;
    let egress = request.egress.then(&mut next).transpose()?;
    Ok((request, Handed { request: text, stdin, status, egress, root: files.next() }))
}

fn boxed(
    bwrap: &Path,
    request: &Request,
    room: &Room,
    numbers: &[String],
    stdin: OwnedFd,
) -> io::Result<Child> {
    Command::new(bwrap)
        .args(&room.args)
        .arg("--")
        .arg(HELPER)
        .args(&request.helper_args)
        .arg(INIT)
        .args(numbers)
        .env_clear()
        .stdin(stdin)
        .spawn()
        .map_err(|err| io::Error::new(err.kind(), format!("bwrap: {err}")))
}

/// Without any wall.
fn bare(request: &Request, handed: Handed) -> io::Result<Child> {
    let cwd = match handed.root {
        Some(root) => {
            let folder = PathBuf::from(format!("/proc/self/fd/{}", root.as_raw_fd()));
            fs::canonicalize(folder.join(&request.cwd))?
        }
        None => PathBuf::from("/tmp"),
    };
    let [program, args @ ..] = &request.argv[..] else { return Err(Errno::INVAL.into()) };
    Command::new(program)
        .args(args)
        .env_clear()
        .env("PATH", PATH)
        .env("HOME", "/tmp")
        .envs(request.env.iter().map(|(name, value)| (name, value)))
        .current_dir(cwd)
        .stdin(Stdio::from(handed.stdin))
        .spawn()
}

/// Waits until the process is over or nobody wants it any more, and ends all that is left.
fn watch(child: Child) -> io::Result<Option<Note>> {
    let pid = Pid::from_child(&child);
    let process = pidfd_open(pid, PidfdFlags::empty())?;
    let lifeline = rustix::stdio::stdin();
    let over = loop {
        let mut polled =
            [PollFd::new(&process, PollFlags::IN), PollFd::new(&lifeline, PollFlags::IN)];
        match poll(&mut polled, None) {
            Ok(_) => break !polled[0].revents().is_empty(),
            Err(Errno::INTR) => {}
            Err(err) => return Err(err.into()),
        }
    };
    let mut ended = None;
    if over {
        ended = reap(WaitOptions::NOHANG, pid)?;
    }
    loop {
        let children = fs::read_to_string(format!(
            "/proc/self/task/{pid}/children",
            pid = getpid().as_raw_nonzero()
        ))?;
        for child in children.split_whitespace().filter_map(|child| child.parse().ok()) {
            if let Some(child) = Pid::from_raw(child) {
                // It may be gone already.
                let _ = kill_process(child, Signal::KILL);
            }
        }
        match wait(WaitOptions::empty()) {
            Ok(Some((dead, status))) if dead == pid && over => {
                ended = Some(note(status.as_raw()));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(Errno::CHILD) => return Ok(ended),
            Err(err) => return Err(err.into()),
        }
    }
}

/// Learns how the process ended, if it is the one that did.
fn reap(options: WaitOptions, pid: Pid) -> io::Result<Option<Note>> {
    match rustix::process::waitpid(Some(pid), options) {
        Ok(Some((_, status))) => Ok(Some(note(status.as_raw()))),
        Ok(None) | Err(Errno::CHILD) => Ok(None),
        Err(err) => Err(err.into()),
    }
}

fn note(status: i32) -> Note {
    let status = std::process::ExitStatus::from_raw(status);
    match (status.code(), status.signal()) {
        (Some(code), _) => Note::Exited(code),
        (None, signal) => Note::Signalled(signal.unwrap_or(0)),
    }
}

//! Watching one process from outside: what it writes, how long it takes, and how it ends.

use std::fs::File;
use std::io::{self, Read};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr, ChildStdout};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use tokio::sync::mpsc::UnboundedSender;

use super::command::ProcessLimits;
use super::error::{Part, SandboxError};
use super::kept::Kept;
use super::protocol::Note;
use super::{Chunk, Ended, Limit, SetAside, Status, Stream};

/// The time that a killed process has to be gone.
const KILL_WALL: Duration = Duration::from_secs(10);
/// The bytes that are read at once.
const READ_BYTES: usize = 64 << 10;
/// The most bytes that a helper says of a process.
const NOTES_BYTES_MAX: usize = 4 << 20;
/// The most bytes of an error of the system that are shown.
const WHY_BYTES_MAX: usize = 512;
/// What nobody did where a guard did not come to its end.
const UNSEEN: &str = "and protected names that it may have made were not looked for";
/// The most names of what a process left that are shown.
const LEFT_SHOWN_MAX: usize = 10;

/// One process, and what is known of it from outside.
pub(super) struct Watch {
    pub(super) guard: Child,
    /// Where its end is shut, the guard kills everything.
    pub(super) lifeline: UnixStream,
    pub(super) status: File,
    pub(super) program: String,
    pub(super) limits: ProcessLimits,
    pub(super) chunks: UnboundedSender<Chunk>,
}

/// What was seen so far.
struct Seen {
    stdout: Kept,
    stderr: Kept,
    notes: Vec<u8>,
    exceeded: Option<Limit>,
}

/// The three streams, until each of them ends.
struct Pipes {
    stdout: Option<ChildStdout>,
    stderr: Option<ChildStderr>,
    status: Option<File>,
}

impl Watch {
    /// Watches until the process and all that it has started are gone.
    pub(super) fn run(mut self) -> Result<Ended, SandboxError> {
        let kept = || Kept::new(self.limits.kept_bytes);
        let mut seen = Seen { stdout: kept(), stderr: kept(), notes: Vec::new(), exceeded: None };
        let watched = self.watch(&mut seen);
        // Whatever happened, nothing is left: the guard ends after all others.
        let _ = self.lifeline.shutdown(Shutdown::Both);
        if watched.is_err() {
            let _ = self.guard.kill();
        }
        let reaped = self.guard.wait();
        watched?;
        let guard = reaped?;
        let ended = seen.ended(&self.program)?;
        match guard.success() {
            true => Ok(ended),
            // It looks for protected names last, so whatever else it said, it did not get there.
            false => Err(SandboxError::Lost(format!("its guard ended with {guard}, {UNSEEN}"))),
        }
    }

    fn watch(&mut self, seen: &mut Seen) -> Result<(), SandboxError> {
        let (stdout, stderr) = (self.guard.stdout.take(), self.guard.stderr.take());
        let mut pipes = Pipes { stdout, stderr, status: Some(self.status.try_clone()?) };
        let wall = Instant::now() + self.limits.wall;
        let mut idle = Instant::now() + self.limits.idle;
        let mut gone = None;
        let mut buffer = vec![0; READ_BYTES];
        while pipes.are_open() {
            let now = Instant::now();
            let until = gone.unwrap_or(wall.min(idle));
            if now >= until {
                if gone.is_some() {
                    return Err(SandboxError::Lost(format!("it could not be killed, {UNSEEN}")));
                }
                let limit = if now >= wall { Limit::Wall } else { Limit::Idle };
                seen.exceeded.get_or_insert(limit);
            }
            if seen.exceeded.is_some() && gone.is_none() {
                gone = Some(now + KILL_WALL);
                self.lifeline.shutdown(Shutdown::Both)?;
            }
            let left = gone.unwrap_or(until).saturating_duration_since(now);
            for (stream, bytes) in pipes.read(left, &mut buffer)? {
                if stream.is_some() {
                    idle = Instant::now() + self.limits.idle;
                }
                self.take(seen, stream, bytes);
            }
        }
        Ok(())
    }

    /// Takes what was written; none of the streams is what the helper says.
    fn take(&self, seen: &mut Seen, stream: Option<Stream>, bytes: Vec<u8>) {
        let Some(stream) = stream else {
            if seen.notes.len() + bytes.len() <= NOTES_BYTES_MAX {
                seen.notes.extend(bytes);
            }
            return;
        };
        let kept = match stream {
            Stream::Stdout => &mut seen.stdout,
            Stream::Stderr => &mut seen.stderr,
        };
        let room = self.limits.output_bytes.saturating_sub(kept.total_bytes());
        let fitting = usize::try_from(room).unwrap_or(usize::MAX).min(bytes.len());
        if fitting < bytes.len() {
            seen.exceeded.get_or_insert(Limit::Output);
        }
        kept.push(&bytes[..fitting]);
        if fitting > 0 {
            // Nobody may be listening.
            let _ = self.chunks.send(Chunk { stream, bytes: bytes[..fitting].to_vec() });
        }
    }
}

impl Pipes {
    fn are_open(&self) -> bool {
        self.stdout.is_some() || self.stderr.is_some() || self.status.is_some()
    }

    /// Waits until there is something to read, and reads some of it.
    fn read(
        &mut self,
        left: Duration,
        buffer: &mut [u8],
    ) -> io::Result<Vec<(Option<Stream>, Vec<u8>)>> {
        let fds = [
            self.stdout.as_ref().map(AsFd::as_fd),
            self.stderr.as_ref().map(AsFd::as_fd),
            self.status.as_ref().map(AsFd::as_fd),
        ];
        let mut polled: Vec<_> =
            fds.iter().flatten().map(|fd| PollFd::new(fd, PollFlags::IN)).collect();
        let timeout = Timespec::try_from(left).ok();
        match poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => return Ok(Vec::new()),
            Err(err) => return Err(err.into()),
        }
        let mut ready = polled.iter().map(|polled| !polled.revents().is_empty());
        let ready = fds.map(|fd| fd.is_some() && ready.next() == Some(true));
        let mut read = Vec::new();
        if ready[0] {
            read.extend(part(&mut self.stdout, Some(Stream::Stdout), buffer)?);
        }
        if ready[1] {
            read.extend(part(&mut self.stderr, Some(Stream::Stderr), buffer)?);
        }
        if ready[2] {
            read.extend(part(&mut self.status, None, buffer)?);
        }
        Ok(read)
    }
}

/// Reads some of a stream, and closes it at its end.
fn part(
    from: &mut Option<impl Read>,
    stream: Option<Stream>,
    buffer: &mut [u8],
) -> io::Result<Option<(Option<Stream>, Vec<u8>)>> {
    let Some(open) = from else { return Ok(None) };
    match open.read(buffer) {
        Ok(0) => {
            *from = None;
            Ok(None)
        }
        Ok(bytes) => Ok(Some((stream, buffer[..bytes].to_vec()))),
        Err(err) if err.kind() == io::ErrorKind::Interrupted => Ok(None),
        Err(err) => Err(err),
    }
}

impl Seen {
    /// What all of it comes to.
    fn ended(self, program: &str) -> Result<Ended, SandboxError> {
        let lines = self.notes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
        let notes = lines.map(serde_json::from_slice::<Note>).collect::<Result<Vec<_>, _>>();
        let notes = notes.map_err(|err| SandboxError::Lost(err.to_string()))?;
        let (mut status, mut cwd, mut set_aside, mut ready) = (None, None, Vec::new(), None);
        let mut changes = None;
        for note in notes {
            match note {
                Note::Ready(held) => ready = Some(held),
                Note::Failed { part, why } => return Err(SandboxError::missing(part, why)),
                Note::Unusable(why) => return Err(SandboxError::Workspace(why)),
                Note::Unstarted(why) => {
                    return Err(SandboxError::Program { program: program.to_owned(), why });
                }
                Note::Lost(why) => return Err(SandboxError::Lost(why)),
                Note::Exited(code) => status = Some(Status::Exited(code)),
                Note::Signalled(signal) => status = Some(Status::Signalled(signal)),
                Note::Exceeded(limit) => status = Some(Status::Exceeded(limit)),
                Note::Cwd(found) => cwd = Some(found),
                Note::SetAside(found) => set_aside = found,
                Note::Changes(found, is_whole) => changes = Some((found, is_whole)),
            }
        }
        if let Some(left) = left(&set_aside) {
            return Err(SandboxError::Left(left));
        }
        let status = match (self.exceeded.map(Status::Exceeded).or(status), ready) {
            (Some(status), _) => status,
            (None, Some(_)) => Status::Cancelled,
            (None, None) => return Err(unbuilt(&self.stderr.text())),
        };
        let Seen { stdout, stderr, .. } = self;
        Ok(Ended {
            status,
            stdout,
            stderr,
            cwd,
            set_aside,
            connections: Vec::new(),
            connections_left_out: 0,
            changes,
            held: ready.unwrap_or_default(),
        })
    }
}

/// What is still in its place, if anything is.
fn left(set_aside: &[SetAside]) -> Option<String> {
    let left: Vec<_> = set_aside.iter().filter(|it| it.now.is_none()).collect();
    let shown = left.iter().take(LEFT_SHOWN_MAX).map(|it| format!("`{}`", it.path));
    let shown = shown.collect::<Vec<_>>().join(", ");
    match left.len() {
        0 => None,
        1..=LEFT_SHOWN_MAX => Some(shown),
        count => Some(format!("{shown} and {} more", count - LEFT_SHOWN_MAX)),
    }
}

/// Which part did not work, by what the part itself says.
fn unbuilt(said: &str) -> SandboxError {
    let said = said.trim();
    let why = match said.get(..said.floor_char_boundary(WHY_BYTES_MAX)) {
        Some("") | None => "it ended without a word".to_owned(),
        Some(why) => why.to_owned(),
    };
    let of_namespaces = ["namespace", "uid map", "gid map", "Operation not permitted", "loopback"];
    let part = match () {
        () if !said.starts_with("bwrap:") => Part::Helper,
        () if of_namespaces.iter().any(|word| said.contains(word)) => Part::Namespaces,
        () => Part::Bubblewrap,
    };
    SandboxError::missing(part, why)
}

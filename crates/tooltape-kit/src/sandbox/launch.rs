//! Starting a helper, and handing it what it needs.

use std::fs::{self, File};
use std::io::{self, IoSlice, Seek, Write};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{self, ExitCode, Stdio};
use std::thread;
use std::time::Duration;

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use rustix::pipe::{PipeFlags, pipe_with};
use tokio::sync::{mpsc, oneshot};
use tooltape::Random;

use super::command::{Command, Files, ProcessLimits};
use super::egress::{Egress, port};
use super::error::{Part, SandboxError};
pub(super) use super::protocol::Held;
use super::protocol::{GUARD, INIT, Request};
use super::watch::Watch;
use super::{Process, Sandbox, Status, guard, init};
use crate::web::Http;
use crate::workspace::Workspace;

/// Where `bwrap` is looked for. No path of the environment's choice is.
const BWRAPS: [&str; 3] = ["/usr/bin/bwrap", "/usr/local/bin/bwrap", "/bin/bwrap"];
/// The time that a sandbox has to show that it works.
const PROBE_WALL: Duration = Duration::from_secs(20);
/// The files that one message hands over.
const HANDED_MAX: usize = 5;

/// Ends the process when it is dropped.
pub(super) struct Stop(UnixStream);

impl Drop for Stop {
    fn drop(&mut self) {
        // It fails where the process is gone already.
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

/// The program that builds the walls.
pub(super) fn bwrap() -> Result<PathBuf, SandboxError> {
    let found = BWRAPS.iter().map(PathBuf::from).find(|bwrap| bwrap.is_file());
    let why = || format!("found no {}", BWRAPS.map(|bwrap| format!("`{bwrap}`")).join(", "));
    found.ok_or_else(|| SandboxError::missing(Part::Bubblewrap, why()))
}

/// Runs nothing in a box, which shows that there is one.
///
/// Says what of the kernel holds it.
pub(super) fn probe(sandbox: &Sandbox) -> Result<Held, SandboxError> {
    if let Some(bwrap) = sandbox.bwrap()?.filter(|bwrap| !bwrap.is_file()) {
        let why = format!("found no `{}`", bwrap.display());
        return Err(SandboxError::missing(Part::Bubblewrap, why));
    }
    let limits = ProcessLimits { wall: PROBE_WALL, ..ProcessLimits::default() };
    let command = Command::new(["/bin/sh", "-c", ":"]).files(Files::None).limits(limits);
    let Started { watch, stop: _kept, .. } = spawn(sandbox, None, Files::None, command)?;
    let ended = watch.run()?;
    match ended.status {
        Status::Exited(0) => Ok(ended.held),
        status @ (Status::Exited(_)
        | Status::Signalled(_)
        | Status::Exceeded(_)
        | Status::Cancelled) => {
            let why = format!("a shell that does nothing ended with {status:?}");
            Err(SandboxError::missing(Part::Helper, why))
        }
    }
}

/// Starts a process, and a thread that watches it.
pub(super) fn start(
    sandbox: &Sandbox,
    files: Option<&Workspace>,
    wanted: Files,
    command: Command,
) -> Result<Process, SandboxError> {
    let Started { watch, stop, chunks, egress } = spawn(sandbox, files, wanted, command)?;
    let (ending, end) = oneshot::channel();
    let watching = move || {
        // Nobody may want to know any more.
        let _ = ending.send(watch.run());
    };
    thread::Builder::new().name("tooltape-process".to_owned()).spawn(watching)?;
    Ok(Process { chunks, end, egress, _stop: stop })
}

/// A process that nobody watches yet.
struct Started {
    watch: Watch,
    stop: Stop,
    chunks: mpsc::UnboundedReceiver<super::Chunk>,
    egress: Option<Egress>,
}

fn spawn(
    sandbox: &Sandbox,
    files: Option<&Workspace>,
    wanted: Files,
    command: Command,
) -> Result<Started, SandboxError> {
    let inner = &sandbox.inner;
    let Command { argv, cwd, stdin, env, files: _, limits, is_preview, reports_cwd } = command;
    let bwrap = sandbox.bwrap()?;
    if is_preview && (bwrap.is_none() || wanted != Files::Write) {
        let why = "a preview needs the sandbox, and a workspace that may be written";
        return Err(SandboxError::Command(why.to_owned()));
    }
    let mut env: Vec<_> = inner.variables.iter().cloned().chain(env).collect();
    // What only seems to be done must not be done elsewhere.
    let may_leave = bwrap.is_some() && !is_preview;
    let (egress, way_out) = match may_leave.then(|| way_out(sandbox, &mut env)).transpose()? {
        Some(Some((egress, theirs))) => (Some(egress), Some(OwnedFd::from(theirs))),
        Some(None) | None => (None, None),
    };
    let request = Request {
        argv,
        env,
        egress: egress.is_some(),
        cwd: cwd.as_str().to_owned(),
        files: wanted,
        limits: limits.clone(),
        reports_cwd,
        is_preview,
        bwrap,
        exposed: inner.exposed.clone(),
        helper_args: inner.helper.args.clone(),
    };
    let program = request.argv.first().cloned().unwrap_or_default();
    let text = serde_json::to_vec(&request).map_err(io::Error::from)?;
    let (status, say) = pipe_with(PipeFlags::CLOEXEC).map_err(io::Error::from)?;
    let (lifeline, theirs) = UnixStream::pair()?;
    let mut guard = process::Command::new(&inner.helper.program)
        .args(&inner.helper.args)
        .arg(GUARD)
        .env_clear()
        .current_dir("/")
        // What interrupts us must not interrupt who cleans up after us.
        .process_group(0)
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|err| SandboxError::missing(Part::Helper, err.to_string()))?;
    let root = files.filter(|_| wanted > Files::None).map(Workspace::root).transpose()?;
    let handed = [filled("request", &text)?, filled("stdin", &stdin)?, say];
    let handed = handed.into_iter().chain(way_out).chain(root).collect();
    if let Err(err) = hand_over(&lifeline, handed) {
        // A helper that hears nothing ends by itself.
        drop(lifeline);
        let _ = guard.wait();
        return Err(SandboxError::missing(Part::Helper, err.to_string()));
    }
    let stop = Stop(lifeline.try_clone()?);
    let (sending, chunks) = mpsc::unbounded_channel();
    let watch = Watch { guard, lifeline, status: status.into(), program, limits, chunks: sending };
    Ok(Started { watch, stop, chunks, egress })
}

/// A proxy for a process whose call may ask somebody, and what its box hands the port out by.
fn way_out(
    sandbox: &Sandbox,
    env: &mut Vec<(String, String)>,
) -> io::Result<Option<(Egress, UnixStream)>> {
    let Some(http) = sandbox.http.clone().filter(Http::may_ask_somebody) else { return Ok(None) };
    let random = Random::system();
    let usable = sandbox.inner.secrets.iter().filter(|secret| sandbox.may_use(secret));
    let secrets: Vec<_> = usable.cloned().map(|secret| secret.with_token(&random)).collect();
    env.extend(port::variables());
    env.extend(secrets.iter().map(|secret| (secret.variable.clone(), secret.token.clone())));
    let (ours, theirs) = UnixStream::pair()?;
    let egress = Egress::start(move || port::receive(&ours), http, secrets)?;
    Ok(Some((egress, theirs)))
}

/// A file in memory that holds these bytes, to be read from its beginning.
fn filled(name: &str, bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memfd_create(name, MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file.into())
}

fn hand_over(to: &UnixStream, files: Vec<OwnedFd>) -> io::Result<()> {
    debug_assert!(files.len() <= HANDED_MAX);
    let files: Vec<_> = files.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(HANDED_MAX))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&files));
    sendmsg(to, &[IoSlice::new(&[0])], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// What of each part there is, as far as it can be found without the others.
pub(super) fn parts(sandbox: Option<&Sandbox>) -> Vec<(Part, String)> {
    let said = |program: &PathBuf, arg: &str| {
        let output = process::Command::new(program).arg(arg).env_clear().output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let bwrap = bwrap().ok().map(|bwrap| {
        format!("{} at `{}`", said(&bwrap, "--version").unwrap_or_default(), bwrap.display())
    });
    let built = |found: &str| sandbox.map(|_| found.to_owned()).unwrap_or_default();
    let held = sandbox.map_or(Held::default(), |sandbox| sandbox.inner.held);
    let counted = match (held.is_counted, rustix::process::getuid().is_root()) {
        (true, _) => "counted by the kernel, for the box",
        (false, false) => "counted by the kernel, for the user",
        (false, true) => "watched only: root's are counted from Linux 6.14 on",
    };
    vec![
        (Part::Platform, format!("linux {}", kernel.trim())),
        (Part::Bubblewrap, bwrap.unwrap_or_default()),
        (Part::Namespaces, built("user, mount, pid, network, ipc, uts, cgroup")),
        (Part::Landlock, built(&format!("version {}", held.landlock))),
        (Part::Seccomp, built("filters installed")),
        (
            Part::Limits,
            built(&format!(
                "memory: address space of each process, sum watched within; processes: {counted}"
            )),
        ),
        (Part::Helper, built("started within")),
    ]
}

/// Plays the part that the first argument names.
pub(super) fn help(args: Vec<String>) -> ExitCode {
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [GUARD] => guard::main(),
        [INIT, request, status] => init::main(request, status, None),
        [INIT, request, status, egress] => init::main(request, status, Some(egress)),
        _ => ExitCode::FAILURE,
    }
}

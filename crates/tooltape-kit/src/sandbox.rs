//! Processes behind the walls of the operating system.

mod change;
mod command;
mod error;
mod kept;
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "only a box has a way out"))]
mod egress;
#[cfg(target_os = "linux")]
mod overlay;
#[cfg(target_os = "linux")]
mod protocol;
#[cfg(target_os = "linux")]
mod watch;
#[cfg(target_os = "linux")]
mod launch;
#[cfg(target_os = "linux")]
mod sweep;
#[cfg(target_os = "linux")]
mod walls;
#[cfg(target_os = "linux")]
mod room;
#[cfg(target_os = "linux")]
mod guard;
#[cfg(target_os = "linux")]
mod init;
#[cfg(not(target_os = "linux"))]
mod elsewhere;
mod survey;

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};
use tokio::sync::{mpsc, oneshot};
use tooltape::schemars::JsonSchema;
use tooltape::scope::{Host, Word};
use tooltape::{CallContext, Enforced, Grant, Reach, RegisterError, Right, Rights};
use tooltape::{Secret, Toolbox};

use crate::web::Http;
use crate::workspace::Workspace;
#[cfg(not(target_os = "linux"))]
use elsewhere as system;
#[cfg(target_os = "linux")]
use launch as system;

pub use change::{CHANGES_BYTES_MAX, CHANGES_MAX, ChangeKind, FileChange};
pub use command::{
    ARGV_BYTES_MAX, CPU_DEFAULT, Command, FILE_WRITTEN_BYTES_DEFAULT, Files, IDLE_DEFAULT,
    KEPT_BYTES_DEFAULT, MEMORY_BYTES_DEFAULT, MEMORY_BYTES_MIN, OPEN_FILES_DEFAULT,
    OUTPUT_BYTES_DEFAULT, PROCESSES_DEFAULT, ProcessLimits, SCRATCH_BYTES_DEFAULT, STDIN_BYTES_MAX,
    WALL_DEFAULT,
};
use egress::{Brokered, Egress};
pub use egress::{
    CONNECTIONS_MAX, CONNECTIONS_SHOWN_MAX, Connection, EGRESS_BYTES_MAX, EGRESS_HEAD_BYTES_MAX,
    EGRESS_IDLE,
};
pub use error::{Part, SandboxError};
pub use kept::Kept;
pub use survey::{Finding, survey};

/// The profile of the right to run processes in the sandbox: `process:shell:sandbox`.
const RIGHT: &str = "process:shell:sandbox";

/// The program that builds the box from within: this very binary, or one that comes with it.
///
/// Whoever has a `main` of their own calls [`sandbox_helper`] from it, and names here how.
#[derive(Clone, Debug)]
pub struct Helper {
    program: PathBuf,
    args: Vec<String>,
}

impl Helper {
    /// A program, and the arguments with which it calls [`sandbox_helper`].
    pub fn new(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Helper {
        let args = args.into_iter().map(Into::into).collect();
        Helper { program: program.into(), args }
    }
}

/// What stands around a process.
#[derive(Clone, Debug)]
enum Walls {
    /// All of them, built by this `bwrap`.
    Up { bwrap: PathBuf },
    /// All of them, or nothing runs: which of the two is found out once, when somebody needs it.
    Wanted(Arc<OnceLock<Result<PathBuf, (Part, String)>>>),
    /// None: the host said so.
    None,
}

/// The right and the means to run processes where they can do no harm.
///
/// A process sees a read-only system, its workspace, and a folder for temporary files; no network
/// but what [`Sandbox::network`] gives, no other process, nothing of the host's environment. It
/// cannot outlive its call. What part of the workspace it may read or write is decided by the
/// rights of the call that starts it.
///
/// There is no such thing as half a sandbox: where one of its parts is missing, it is not made.
#[derive(Clone)]
pub struct Sandbox {
    inner: Arc<Inner>,
    /// Whom processes may ask, where they may ask anybody.
    http: Option<Http>,
    /// The call that holds it, where one does.
    call: Option<CallContext>,
}

#[derive(Clone)]
struct Inner {
    helper: Helper,
    walls: Walls,
    /// What of the kernel holds, where walls are up.
    held: system::Held,
    exposed: Vec<PathBuf>,
    variables: Vec<(String, String)>,
    secrets: Vec<Brokered>,
}

impl Sandbox {
    /// Makes sure that everything works that holds a process, once.
    pub fn new(helper: Helper) -> Result<Sandbox, SandboxError> {
        Sandbox::with_bwrap(helper, system::bwrap()?)
    }

    /// The same, with a `bwrap` that is not where it usually is.
    pub fn with_bwrap(helper: Helper, bwrap: impl Into<PathBuf>) -> Result<Sandbox, SandboxError> {
        let sandbox = Sandbox::of(helper, Walls::Up { bwrap: bwrap.into() });
        let held = system::probe(&sandbox)?;
        let inner = Inner { held, ..Inner::clone(&sandbox.inner) };
        Ok(Sandbox { inner: Arc::new(inner), ..sandbox })
    }

    /// The same, found out when the first process is to be started: where a part is missing, that
    /// one is refused, and so is every other.
    pub fn when_needed(helper: Helper) -> Sandbox {
        Sandbox::of(helper, Walls::Wanted(Arc::default()))
    }

    /// No sandbox at all: processes may do whatever the host may. Every result says so.
    pub fn unsafe_without(helper: Helper) -> Sandbox {
        Sandbox::of(helper, Walls::None)
    }

    fn of(helper: Helper, walls: Walls) -> Sandbox {
        let inner = Inner {
            helper,
            walls,
            held: system::Held::default(),
            exposed: Vec::new(),
            variables: Vec::new(),
            secrets: Vec::new(),
        };
        Sandbox { inner: Arc::new(inner), http: None, call: None }
    }

    /// The same without a way out, and without the secrets that are used there.
    #[must_use]
    pub fn alone(mut self) -> Sandbox {
        self.inner_mut().secrets.clear();
        self.http = None;
        self
    }

    /// Also shows processes a folder of the host, under its own path, to be read only.
    pub fn exposing(mut self, folder: impl AsRef<Path>) -> Sandbox {
        self.inner_mut().exposed.push(folder.as_ref().to_owned());
        self
    }

    /// Also sets a variable in the environment of every process.
    pub fn variable(mut self, name: impl Into<String>, value: impl Into<String>) -> Sandbox {
        self.inner_mut().variables.push((name.into(), value.into()));
        self
    }

    /// Gives processes a way out to the hosts that their call may ask, and to nobody else.
    ///
    /// It is a proxy that the usual variables name, and the only way: a call that may ask nobody
    /// has no network at all. A tunnel (`https`) needs the right `net:any:HOST:PORT`, since nobody
    /// sees what is asked in it. Nothing of this holds without walls.
    #[must_use]
    pub fn network(mut self, http: Http) -> Sandbox {
        self.http = Some(http);
        self
    }

    /// Lets processes use a secret that they never have.
    ///
    /// The variable holds a token. In the header fields of a request to `http://HOST/…` for this
    /// very host, the proxy puts the secret in its place, and asks as `https`; to anybody else the
    /// token is a token. Needs [`Sandbox::network`], and of a call the right `secret:use:NAME`.
    /// Fails where the secret cannot stand in a header field.
    pub fn broker(
        mut self,
        name: Word,
        variable: impl Into<String>,
        host: Host,
        secret: Secret<Vec<u8>>,
    ) -> Result<Sandbox, SandboxError> {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~');
        if secret.expose().is_empty() || !secret.expose().iter().all(is_plain) {
            let why = "which is no text that a header field can hold";
            return Err(SandboxError::Command(format!("found the secret `{name}`, {why}")));
        }
        let brokered = Brokered::new(name, variable.into(), host, secret);
        self.inner_mut().secrets.push(brokered);
        Ok(self)
    }

    /// Whether the call may use a secret.
    #[cfg(target_os = "linux")]
    fn may_use(&self, secret: &Brokered) -> bool {
        let right = Right::SecretUse(secret.name.clone());
        self.call.as_ref().is_none_or(|call| call.check(&right).is_ok())
    }

    fn inner_mut(&mut self) -> &mut Inner {
        Arc::make_mut(&mut self.inner)
    }

    /// What builds the walls; nothing, where there are to be none.
    fn bwrap(&self) -> Result<Option<PathBuf>, SandboxError> {
        let found = match &self.inner.walls {
            Walls::None => return Ok(None),
            Walls::Up { bwrap } => return Ok(Some(bwrap.clone())),
            Walls::Wanted(found) => found.get_or_init(|| {
                let built = system::bwrap()
                    .and_then(|bwrap| Sandbox::with_bwrap(self.inner.helper.clone(), bwrap))
                    .and_then(|sandbox| sandbox.bwrap());
                match built {
                    Ok(bwrap) => Ok(bwrap.unwrap_or_default()),
                    Err(SandboxError::Missing { part, why }) => Err((part, why)),
                    Err(err) => Err((Part::Helper, err.to_string())),
                }
            }),
        };
        let missing = |(part, why): (Part, String)| SandboxError::Missing { part, why };
        found.clone().map(Some).map_err(missing)
    }

    /// Who holds a process of this sandbox to what it may do.
    pub fn enforced_by(&self) -> Enforced {
        match self.inner.walls {
            Walls::Up { .. } | Walls::Wanted(_) => Enforced::Sandbox,
            Walls::None => Enforced::Host,
        }
    }

    /// Says of a tool whose calls all run in this sandbox who enforces it, on every reply, and that
    /// they reach other machines where the sandbox has a way out.
    pub fn vouch(&self, toolbox: &mut Toolbox, tool: &str) -> Result<(), RegisterError> {
        toolbox.enforced(tool, self.enforced_by())?;
        match self.http.as_ref().is_some_and(Http::may_ask) {
            true => toolbox.reaching(tool, Reach::Network),
            false => Ok(()),
        }
    }

    /// Starts a process. It is over when [`Process::end`] says so, or when the handle is dropped.
    ///
    /// It sees as much of the workspace as the command asks for and the call may use; without a
    /// workspace, none. Fails where the process was not started: nothing happened.
    pub fn start(
        &self,
        files: Option<&Workspace>,
        command: Command,
    ) -> Result<Process, SandboxError> {
        command.check()?;
        let files = files.map(|files| (files, files.may_use_all())).filter(|(_, may)| may.read);
        let wanted = match files {
            None => Files::None,
            Some((_, may)) if may.write => command.files,
            Some(_) => command.files.min(Files::Read),
        };
        system::start(self, files.map(|(files, _)| files), wanted, command)
    }

    /// Whether the call may run this program, by the right to run all, or by one for it alone.
    pub fn check(&self, program: Option<&str>) -> Result<(), SandboxError> {
        let Some(call) = &self.call else { return Ok(()) };
        let all: Right = RIGHT.parse().expect("the right of a sandbox is a right");
        let Err(refusal) = call.check(&all) else { return Ok(()) };
        let one = program.and_then(|program| format!("process:run:{program}").parse().ok());
        match one.map(|one| call.check(&one)) {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(SandboxError::Withheld(Box::new(refusal))),
        }
    }
}

impl Grant for Sandbox {
    /// Whoever holds it may run processes in it.
    fn confers(&self) -> Rights {
        let own = [RIGHT.parse().expect("the right of a sandbox is a right")];
        let hosts = self.http.as_ref().map_or_else(Rights::none, Grant::confers);
        let secrets = self.inner.secrets.iter().map(|it| Right::SecretUse(it.name.clone()));
        let allowed = own.into_iter().chain(hosts.allowed().iter().cloned()).chain(secrets);
        Rights::of(allowed).denying(hosts.denied().iter().cloned())
    }

    fn for_call(mut self, context: &CallContext) -> Sandbox {
        self.http = self.http.map(|http| http.for_call(context));
        self.call = Some(context.clone());
        self
    }
}

impl fmt::Debug for Sandbox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sandbox({})", self.enforced_by())
    }
}

/// One of the two streams that a process writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stream {
    /// Its standard output.
    Stdout,
    /// Its standard error.
    Stderr,
}

/// Some bytes that a process has written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk {
    /// Where to.
    pub stream: Stream,
    /// What.
    pub bytes: Vec<u8>,
}

/// A running process. Dropping it kills the process and all that it has started.
pub struct Process {
    chunks: mpsc::UnboundedReceiver<Chunk>,
    end: oneshot::Receiver<Result<Ended, SandboxError>>,
    /// Its way out, where it has one.
    egress: Option<Egress>,
    /// Closed when the handle is dropped, which kills the process.
    _stop: system::Stop,
}

impl Process {
    /// What the process writes next, or nothing once it is over.
    ///
    /// Dropping the future loses nothing. What is never asked for is bounded by
    /// [`ProcessLimits::output_bytes`].
    pub async fn next(&mut self) -> Option<Chunk> {
        self.chunks.recv().await
    }

    /// Waits until the process and all that it has started are gone, and says how it ended.
    ///
    /// Dropping the future kills the process.
    pub async fn end(self) -> Result<Ended, SandboxError> {
        let gone = || SandboxError::Lost("its watcher ended".to_owned());
        let mut ended = self.end.await.unwrap_or_else(|_| Err(gone()))?;
        if let Some(egress) = self.egress {
            (ended.connections, ended.connections_left_out) = egress.close();
        }
        Ok(ended)
    }
}

/// How a process ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Why.
    pub status: Status,
    /// What it wrote to its standard output.
    pub stdout: Kept,
    /// What it wrote to its standard error.
    pub stderr: Kept,
    /// The folder that a shell was in at its end, where it was asked for and known.
    pub cwd: Option<String>,
    /// Protected names that the process had made, and that were renamed.
    pub set_aside: Vec<SetAside>,
    /// The connections that it asked for, in that order, those that are still open included.
    pub connections: Vec<Connection>,
    /// How many more it asked for; of too many, those are left out first that were refused.
    pub connections_left_out: u64,
    /// What it would change, and whether that is all of it, where it was a preview that ended.
    pub changes: Option<(Vec<FileChange>, bool)>,
    /// What of the kernel held it.
    held: system::Held,
}

/// Something under a protected name that was not there before, and got a harmless one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
pub struct SetAside {
    /// Where it was made, relative to the workspace.
    pub path: String,
    /// Where it is now; nothing, where it could not be renamed and is still there.
    pub now: Option<String>,
}

/// Why a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It ended by itself, with this code.
    Exited(i32),
    /// A signal killed it, which nobody of us sent.
    Signalled(i32),
    /// It was killed, since it exceeded a limit.
    Exceeded(Limit),
    /// It was killed, since nobody wanted it any more.
    Cancelled,
}

/// A limit of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "tooltape::schemars")]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    /// Of time in all.
    Wall,
    /// Of time without output.
    Idle,
    /// Of bytes written to one stream.
    Output,
    /// Of memory of all its processes.
    Memory,
    /// Of processes and threads at once.
    Processes,
}

impl Limit {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Limit::Wall => "wall",
            Limit::Idle => "idle",
            Limit::Output => "output",
            Limit::Memory => "memory",
            Limit::Processes => "processes",
        }
    }
}

/// What a [`Helper`] does: `args` are those that follow its own.
///
/// It is only ever started by a [`Sandbox`], talks to it over what it inherits, and never returns
/// to other work.
pub fn sandbox_helper(args: impl IntoIterator<Item = String>) -> ExitCode {
    system::help(args.into_iter().collect())
}

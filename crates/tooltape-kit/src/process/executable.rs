//! A program in any language as a tool: JSON in, JSON out, in the sandbox.

mod answer;
mod copy;
mod error;
mod manifest;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use answer::{Lines, reason, result};
use copy::Copied;
use serde_json::json;
use tooltape::{Access, Args, BoundKind, BoxFuture, Executed, Grants, Output, Progress};
use tooltape::{Repeat, Spec, Tool, ToolError};

use crate::sandbox::{Command, Files, Limit, ProcessLimits, Sandbox, SandboxError, Status, Stream};
use crate::workspace::{Workspace, WorkspacePath, shown};

pub use error::ExecutableError;
use manifest::PROGRAM;
pub use manifest::{
    EXECUTABLE_OUTPUT_BYTES_MAX, EXECUTABLE_WALL_DEFAULT, EXECUTABLE_WALL_MAX, MANIFEST_BYTES_MAX,
    Manifest, ManifestBounds, ManifestEffects,
};

/// The largest program, in bytes.
pub const PROGRAM_BYTES_MAX: u64 = 64 << 20;
/// How long a program may take to describe itself.
pub const DESCRIBE_WALL: Duration = Duration::from_secs(10);

/// The bytes of what a program writes to its standard error that the host reads.
const STDERR_BYTES_MAX: usize = 8 << 10;

/// A program in any language as a tool.
///
/// It reads its arguments as one JSON document, and answers with one: the result itself, or lines
/// of `{"progress": …}` and then `{"result": …}` or `{"error": {"message": …}}`. It runs in the
/// [`Sandbox`] of the run, where it sees as much of the workspace as its manifest asks for and the
/// call may use, and no network.
///
/// What runs are the very bytes that were looked at here: a program that was changed since then is
/// refused. The tool's definition covers them, and so does every approval.
///
/// ```no_run
/// use tooltape::Toolbox;
/// use tooltape_kit::{Executable, Sandbox};
///
/// # fn register(sandbox: Sandbox) -> Result<(), Box<dyn std::error::Error>> {
/// let tool = Executable::load("./word_count.py")?;
/// let mut toolbox = Toolbox::new([tool.tool()])?;
/// sandbox.vouch(&mut toolbox, "word_count")?;
/// # Ok(())
/// # }
/// ```
pub struct Executable {
    path: PathBuf,
    manifest: Manifest,
    hash: String,
    spec: Spec,
    /// The copy that is run, once it is needed.
    copied: OnceLock<Copied>,
}

impl Executable {
    /// A program with the manifest beside it. Nothing is run.
    pub fn load(program: impl AsRef<Path>) -> Result<Executable, ExecutableError> {
        let program = program.as_ref();
        let bytes = bytes_of(program)?;
        Executable::of(program, &bytes, Manifest::beside(program)?)
    }

    /// A program with the manifest that it prints when it is asked with `--describe`.
    ///
    /// It is asked in the sandbox, where it sees nothing of the workspace.
    pub async fn describe(
        program: impl AsRef<Path>,
        sandbox: &Sandbox,
    ) -> Result<Executable, ExecutableError> {
        let program = program.as_ref();
        let bytes = bytes_of(program)?;
        check_runnable(program, &bytes, &[])?;
        let undescribed = |why: String| {
            let path = program.to_owned();
            ExecutableError::Undescribed { path, why }
        };
        let copied = Copied::new(&bytes, program)
            .map_err(|source| ExecutableError::Unreadable { path: program.to_owned(), source })?;
        let limits = ProcessLimits {
            wall: DESCRIBE_WALL,
            idle: DESCRIBE_WALL,
            output_bytes: MANIFEST_BYTES_MAX,
            kept_bytes: usize::try_from(MANIFEST_BYTES_MAX).unwrap_or(usize::MAX),
            ..ProcessLimits::default()
        };
        let argv = [copied.program().to_string_lossy().into_owned(), "--describe".to_owned()];
        let command = Command::new(argv).files(Files::None).limits(limits);
        let sandbox = sandbox.clone().exposing(copied.folder());
        let mut process = sandbox.start(None, command).map_err(ExecutableError::Sandbox)?;
        while process.next().await.is_some() {}
        let ended = process.end().await.map_err(ExecutableError::Sandbox)?;
        match ended.status {
            Status::Exited(0) => {}
            status => return Err(undescribed(format!("it {}", end_of(status)))),
        }
        let printed = ended.stdout.text();
        let manifest = Manifest::printed(printed.trim()).map_err(undescribed)?;
        Executable::of(program, &bytes, manifest)
    }

    fn of(program: &Path, bytes: &[u8], manifest: Manifest) -> Result<Executable, ExecutableError> {
        check_runnable(program, bytes, &manifest.argv)?;
        let path = program.canonicalize();
        let path = path
            .map_err(|source| ExecutableError::Unreadable { path: program.to_owned(), source })?;
        let hash = hash_of(bytes, &manifest);
        let invalid = |why| ExecutableError::Manifest { path: program.to_owned(), why };
        let spec = manifest.spec(&hash).map_err(invalid)?.takes::<Sandbox>().takes::<Progress>();
        let spec = match manifest.files {
            Files::None => spec,
            Files::Read | Files::Write => spec.takes::<Workspace>(),
        };
        Ok(Executable { path, manifest, hash, spec, copied: OnceLock::new() })
    }

    /// The same program, of which nobody says that it is harmless: whatever its manifest says, its
    /// calls count as changes.
    #[must_use]
    pub fn untrusted(mut self) -> Executable {
        (self.spec.effects.access, self.spec.effects.repeat) = (Access::Write, Repeat::Once);
        self
    }

    /// What it says about itself.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// The hash of its bytes and its manifest, as lower-case hexadecimal.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// Where the program is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tool.
    pub fn tool(self) -> Arc<dyn Tool> {
        Arc::new(self)
    }

    /// The copy to run, if the program is still what it was.
    fn unchanged(&self) -> Result<&Copied, ToolError> {
        let path = self.path.display();
        let bytes = bytes_of(&self.path)
            .map_err(|err| ToolError::not_done(err.to_string()).code("program_changed"))?;
        if hash_of(&bytes, &self.manifest) != self.hash {
            let told =
                format!("`{path}` was changed since it became a tool: it must be added again");
            return Err(ToolError::not_done(told).code("program_changed"));
        }
        if let Some(copied) = self.copied.get() {
            return Ok(copied);
        }
        let copied = Copied::new(&bytes, &self.path)
            .map_err(|err| ToolError::not_done("the program could not be copied").because(err))?;
        Ok(self.copied.get_or_init(|| copied))
    }

    async fn run(
        &self,
        args: &str,
        sandbox: Sandbox,
        files: Option<Workspace>,
        progress: &Progress,
    ) -> Result<Output, ToolError> {
        sandbox.check(self.path.to_str()).map_err(SandboxError::tell)?;
        let copied = self.unchanged()?;
        let program = copied.program().to_string_lossy();
        let argv: Vec<String> = match self.manifest.argv.as_slice() {
            [] => vec![program.into_owned()],
            argv => argv.iter().map(|arg| arg.replace(PROGRAM, &program)).collect(),
        };
        let command = Command::new(argv)
            .cwd(WorkspacePath::root())
            .stdin(args.as_bytes())
            .files(self.manifest.files)
            .limits(self.manifest.limits());
        // A manifest cannot ask for the network, so a program has none, and no secret to use there.
        let sandbox = sandbox.alone().exposing(copied.folder());
        let mut process = sandbox.start(files.as_ref(), command).map_err(SandboxError::tell)?;
        let mut lines = Lines::default();
        while let Some(chunk) = process.next().await {
            if chunk.stream == Stream::Stdout {
                lines.read(&chunk.bytes, progress);
            }
        }
        let ended = process.end().await.map_err(SandboxError::tell)?;
        let stderr = shown(&ended.stderr.text(), STDERR_BYTES_MAX);
        let details = json!({ "stderr": stderr, "status": end_of(ended.status) });
        let limits = self.manifest.limits();
        // Its word that it did nothing is as good as the box: what could write, may have.
        let could_write = self.manifest.files == Files::Write;
        let failed = |err: ToolError| match err.host_details() {
            _ if could_write && err.executed() == Executed::NotExecuted => {
                ToolError::tell(err.told().to_owned())
                    .code("program_failed")
                    .details(details.clone())
            }
            Some(_) => err,
            None => err.details(details.clone()),
        };
        match ended.status {
            Status::Exited(0) => {
                let result = result(&ended.stdout.bytes()).map_err(failed)?;
                Ok(result.detail(details.clone()))
            }
            Status::Exited(_) => Err(failed(reason(&ended.stdout.bytes()).unwrap_or_else(|| {
                let told = format!("the program {}", end_of(ended.status));
                ToolError::tell(told).code("exit_code")
            }))),
            Status::Signalled(_) => {
                let told = format!("the program {}", end_of(ended.status));
                Err(failed(ToolError::in_doubt(told).code("killed")))
            }
            Status::Exceeded(limit) => Err(failed(exceeded(limit, &limits))),
            Status::Cancelled => Err(ToolError::cancelled()),
        }
    }
}

impl Tool for Executable {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        args: Args,
        grants: &'a Grants,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        let sandbox = grants.get::<Sandbox>();
        let (files, progress) = (grants.get::<Workspace>(), grants.get::<Progress>());
        Box::pin(async move {
            let sandbox = sandbox.ok_or_else(|| ToolError::not_done("there is no sandbox"))?;
            let progress = progress.unwrap_or_else(Progress::detached);
            self.run(args.canon().as_str(), sandbox, files, &progress).await
        })
    }
}

/// Reads a program, which nobody has to trust for that.
fn bytes_of(program: &Path) -> Result<Vec<u8>, ExecutableError> {
    let path = || program.to_owned();
    let unreadable = |source| ExecutableError::Unreadable { path: path(), source };
    let metadata = fs::metadata(program).map_err(unreadable)?;
    if !metadata.is_file() || !(1..=PROGRAM_BYTES_MAX).contains(&metadata.len()) {
        return Err(ExecutableError::NoProgram { path: path() });
    }
    fs::read(program).map_err(unreadable)
}

/// The hash of a program and of what is said about it.
fn hash_of(bytes: &[u8], manifest: &Manifest) -> String {
    let manifest = serde_json::to_vec(manifest).unwrap_or_default();
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes).update(&manifest);
    hasher.finalize().to_hex().to_string()
}

/// Checks that the program can be started: by itself, or by an interpreter that is named.
fn check_runnable(program: &Path, bytes: &[u8], argv: &[String]) -> Result<(), ExecutableError> {
    let path = program.to_owned();
    if argv.first().is_some_and(|first| !first.contains(PROGRAM)) {
        return Ok(());
    }
    if !is_executable(program) {
        return Err(ExecutableError::NotExecutable { path });
    }
    let line = bytes.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let Some(line) = line.strip_prefix(b"#!") else { return Ok(()) };
    let line = String::from_utf8_lossy(line);
    match line.split_whitespace().next() {
        Some(interpreter) if !Path::new(interpreter).exists() => {
            let interpreter = shown(interpreter, STDERR_BYTES_MAX);
            Err(ExecutableError::NoInterpreter { path, interpreter })
        }
        Some(_) | None => Ok(()),
    }
}

#[cfg(unix)]
fn is_executable(program: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(program).is_ok_and(|metadata| metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(not(unix))]
fn is_executable(_: &Path) -> bool {
    true
}

/// How a program ended, in words.
fn end_of(status: Status) -> String {
    match status {
        Status::Exited(code) => format!("ended with the exit code {code}"),
        Status::Signalled(signal) => format!("was killed by the signal {signal}"),
        Status::Exceeded(limit) => format!("was killed at its limit of `{}`", limit.word()),
        Status::Cancelled => "was cancelled".to_owned(),
    }
}

fn exceeded(limit: Limit, limits: &ProcessLimits) -> ToolError {
    let ms = |duration: Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    let (bound, at) = match limit {
        Limit::Wall => (BoundKind::Wall, ms(limits.wall)),
        Limit::Idle => (BoundKind::Idle, ms(limits.idle)),
        Limit::Output => (BoundKind::OutputBytes, limits.output_bytes),
        Limit::Memory => (BoundKind::Memory, limits.memory_bytes),
        Limit::Processes => {
            let told = format!("the program {}", end_of(Status::Exceeded(limit)));
            return ToolError::in_doubt(told).code("processes");
        }
    };
    ToolError::exceeded(bound, at, Executed::Unknown)
}

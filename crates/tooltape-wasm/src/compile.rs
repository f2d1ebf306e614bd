//! Compiling components: in a process of its own, which may use so much and no more.

mod worker;

use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};
pub use worker::compile_helper;

use crate::body::shown;
use crate::engine;
use crate::error::WasmError;
use crate::limit::{WHY_BYTES_MAX, WasmLimits};

/// Who compiles components.
#[derive(Clone, Debug)]
pub enum Compiler {
    /// A process of its own, with bounds of time and memory: for all that others wrote.
    Helper(Helper),
    /// This process, where nothing bounds what compiling uses: for what the host wrote itself.
    InProcess,
}

/// The program that compiles: this very binary, or one that comes with it.
///
/// Whoever has a `main` of their own calls [`compile_helper`] from it, and names here how.
#[derive(Clone, Debug)]
pub struct Helper {
    program: PathBuf,
    args: Vec<String>,
}

impl Helper {
    /// A program, and the arguments with which it calls [`compile_helper`].
    pub fn new(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = impl Into<String>>,
    ) -> Helper {
        Helper { program: program.into(), args: args.into_iter().map(Into::into).collect() }
    }
}

impl Compiler {
    /// Compiles a component. Dropping the future ends the process.
    pub(crate) async fn compile(
        &self,
        name: &str,
        bytes: &[u8],
        limits: &WasmLimits,
    ) -> Result<Vec<u8>, WasmError> {
        match self {
            Compiler::Helper(helper) => helper.compile(name, bytes, limits).await,
            Compiler::InProcess => {
                let (bytes, name) = (bytes.to_vec(), name.to_owned());
                let stopped = |err: tokio::task::JoinError| err.to_string();
                let compiled = tokio::task::spawn_blocking(move || compiled(&bytes)).await;
                match compiled.map_err(stopped) {
                    Ok(compiled) => compiled.map_err(|why| WasmError::Invalid { name, why }),
                    Err(why) => Err(WasmError::Compile { name, why }),
                }
            }
        }
    }
}

/// Compiles a component here and now.
fn compiled(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let compiled = engine::compiling().and_then(|engine| engine.precompile_component(bytes));
    compiled.map_err(|err| shown(&format!("{err:#}")))
}

impl Helper {
    async fn compile(
        &self,
        name: &str,
        bytes: &[u8],
        limits: &WasmLimits,
    ) -> Result<Vec<u8>, WasmError> {
        let failed = |why: String| WasmError::Compile { name: name.to_owned(), why };
        let mut child = self.start(limits).map_err(|err| {
            failed(format!("`{}` cannot be started: {err}", self.program.display()))
        })?;
        let compiling = exchange(&mut child, bytes, limits.artifact_bytes);
        let wall = limits.compile_wall;
        let Ok(exchanged) = tokio::time::timeout(wall, compiling).await else {
            let ms = wall.as_millis();
            return Err(failed(format!("it took longer than the bound of {ms} ms")));
        };
        let ended = exchanged.map_err(|err| failed(format!("the compiler went away: {err}")))?;
        let most = limits.artifact_bytes;
        if ended.artifact.len() as u64 > most {
            return Err(failed(format!("what it compiles to exceeds the bound of {most} bytes")));
        }
        match ended.status.code() {
            Some(0) => Ok(ended.artifact),
            Some(code) if code == i32::from(worker::INVALID) => {
                Err(WasmError::Invalid { name: name.to_owned(), why: ended.told() })
            }
            Some(code) => {
                let told = ended.told();
                Err(failed(format!("the compiler ended with the exit code {code}: {told}")))
            }
            None => {
                let (memory, cpu) = (limits.compile_memory, cpu_seconds(wall));
                Err(failed(format!(
                    "the compiler was killed: it may use {memory} bytes of memory and {cpu} \
                     seconds of processor time"
                )))
            }
        }
    }

    fn start(&self, limits: &WasmLimits) -> Result<Child, std::io::Error> {
        let bounds = [limits.compile_memory, cpu_seconds(limits.compile_wall)];
        Command::new(&self.program)
            .args(&self.args)
            .args(bounds.map(|bound| bound.to_string()))
            .env_clear()
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
    }
}

/// The processor time that goes with a wall time, in whole seconds.
fn cpu_seconds(wall: Duration) -> u64 {
    wall.as_secs().max(1)
}

/// What a compiler left behind.
struct Ended {
    status: ExitStatus,
    artifact: Vec<u8>,
    stderr: Vec<u8>,
}

impl Ended {
    fn told(&self) -> String {
        shown(String::from_utf8_lossy(&self.stderr).trim())
    }
}

/// Hands a process a component, and takes what it makes of it.
async fn exchange(
    child: &mut Child,
    bytes: &[u8],
    artifact_max: u64,
) -> Result<Ended, std::io::Error> {
    let (stdin, stdout) = (child.stdin.take(), child.stdout.take());
    let stderr = child.stderr.take();
    let give = async move {
        if let Some(mut stdin) = stdin {
            // Who reads no further has seen enough, and says why.
            let _ = stdin.write_all(bytes).await;
        }
    };
    let told_max = WHY_BYTES_MAX as u64;
    let ((), artifact, stderr) =
        tokio::join!(give, taken(stdout, artifact_max), taken(stderr, told_max));
    let (artifact, stderr) = (artifact?, stderr?);
    Ok(Ended { status: child.wait().await?, artifact, stderr })
}

/// All that comes out of a pipe, but at most one byte more than so many.
async fn taken(pipe: Option<impl AsyncRead + Unpin>, most: u64) -> Result<Vec<u8>, std::io::Error> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        pipe.take(most.saturating_add(1)).read_to_end(&mut bytes).await?;
    }
    Ok(bytes)
}

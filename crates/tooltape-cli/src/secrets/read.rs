//! Reading one secret, from a variable, a file or a program.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use tooltape::limits::SECRET_BYTES_MIN;
use tooltape::{Secret, SecretValue as _};
use zeroize::Zeroizing;

/// The most bytes of one secret.
const SECRET_BYTES_MAX: usize = 16 << 10;
/// How long a program may take to print a secret, in seconds: a person may have to unlock it.
pub(super) const COMMAND_SECONDS_DEFAULT: u32 = 60;
/// How often it is looked whether a program has ended.
const COMMAND_PAUSE: Duration = Duration::from_millis(5);

/// Where a secret is read from.
pub(super) enum Source {
    Variable(String),
    File(PathBuf),
    Command { argv: Vec<String>, folder: PathBuf, seconds: u32 },
}

/// The bytes of a secret: a buffer that never grows, so that nothing of it is left behind.
type Bytes = Zeroizing<Vec<u8>>;

impl Source {
    /// A program, which is never a shell's text. One that has no path is looked for where programs
    /// are, and never in the current folder, which may be a stranger's.
    pub(super) fn command(argv: &[String], folder: &Path, seconds: u32) -> Result<Source, String> {
        let Some(program) = argv.first().filter(|program| !program.is_empty()) else {
            return Err("expected a program and its arguments, found nothing".to_owned());
        };
        if program.contains('/') && !program.starts_with('/') {
            let found = format!("`{program}` depends on the current folder");
            return Err(format!("{found}, expected a name or an absolute path"));
        }
        if argv.iter().any(|word| word.contains('\0')) {
            return Err("expected words without NUL".to_owned());
        }
        Ok(Source::Command { argv: argv.to_vec(), folder: folder.to_owned(), seconds })
    }

    /// The key of the configuration that names it.
    pub(super) fn key(&self) -> &'static str {
        match self {
            Source::Variable(_) => "env",
            Source::File(_) => "file",
            Source::Command { .. } => "command",
        }
    }

    /// How a configuration says it.
    pub(super) fn config(&self) -> String {
        match self {
            Source::Variable(name) => format!("env = \"{name}\""),
            Source::File(path) => format!("file = {path:?}"),
            Source::Command { argv, .. } => format!("command = {argv:?}"),
        }
    }

    /// Reads it, or says why not; nothing of the secret is in that. Programs are not handed these
    /// variables.
    pub(super) fn read(&self, variables: &[&str]) -> Result<Secret<Vec<u8>>, String> {
        let mut bytes = match self {
            Source::Variable(name) => match std::env::var_os(name) {
                Some(value) => Zeroizing::new(value.into_vec()),
                None => return Err(format!("cannot be read: the variable `{name}` is not set")),
            },
            Source::File(path) => {
                file(path).map_err(|err| format!("cannot be read: `{}`: {err}", path.display()))?
            }
            Source::Command { argv, folder, seconds } => {
                let (wall, name) = (Duration::from_secs(u64::from(*seconds)), &argv[0]);
                let printed = printed(argv, folder, variables, wall);
                printed.map_err(|why| format!("cannot be read: `{name}` {why}"))?
            }
        };
        for end in [b'\n', b'\r'] {
            if bytes.last() == Some(&end) {
                bytes.pop();
            }
        }
        match bytes.len() {
            0 => Err("is empty".to_owned()),
            long if long > SECRET_BYTES_MAX => {
                Err(format!("has more than {SECRET_BYTES_MAX} bytes"))
            }
            short if short < SECRET_BYTES_MIN => {
                let expected = format!("expected at least {SECRET_BYTES_MIN} to look for it");
                Err(format!("has {short} bytes, {expected}"))
            }
            _ => Ok(Secret::new(Vec::of_bytes(bytes).expect("all bytes are bytes"))),
        }
    }
}

fn file(path: &Path) -> io::Result<Bytes> {
    // To open a pipe is to wait for whoever writes to it.
    if !path.metadata()?.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    filled(File::open(path)?)
}

/// All bytes there are, and one too many where there are too many.
fn filled(mut from: impl Read) -> io::Result<Bytes> {
    // Room for a line end, too.
    let mut bytes = Zeroizing::new(vec![0; SECRET_BYTES_MAX + 3]);
    let mut len = 0;
    while len < bytes.len() {
        match from.read(&mut bytes[len..]) {
            Ok(0) => break,
            Ok(more) => len += more,
            Err(err) if err.kind() == io::ErrorKind::Interrupted => {}
            Err(err) => return Err(err),
        }
    }
    bytes.truncate(len);
    Ok(bytes)
}

/// What a program prints. What it complains of is read by nobody: that may be the secret, too.
fn printed(
    argv: &[String],
    folder: &Path,
    variables: &[&str],
    wall: Duration,
) -> Result<Bytes, String> {
    let began = Instant::now();
    let program = found(&argv[0]).ok_or("is not there")?;
    let mut command = Command::new(program);
    command.args(&argv[1..]).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if !folder.as_os_str().is_empty() {
        command.current_dir(folder);
    }
    for name in variables {
        command.env_remove(name);
    }
    let mut child = command.spawn().map_err(|err| format!("does not start: {err}"))?;
    let stdout = child.stdout.take().expect("it was piped");
    let (sender, receiver) = mpsc::sync_channel(1);
    // Ends with the program, or with ours.
    thread::spawn(move || sender.send(filled(stdout)));
    let read = receiver.recv_timeout(wall);
    let ended = match &read {
        Ok(Ok(bytes)) if bytes.len() <= SECRET_BYTES_MAX + 2 => until(&mut child, began + wall),
        Ok(_) | Err(_) => None,
    };
    let Some(status) = ended else {
        let _gone = child.kill().and_then(|()| child.wait());
        return Err(match read {
            Err(RecvTimeoutError::Timeout) => format!("took longer than {wall:?}"),
            Ok(Ok(bytes)) if bytes.len() > SECRET_BYTES_MAX + 2 => {
                format!("prints more than {SECRET_BYTES_MAX} bytes")
            }
            Ok(Ok(_)) => format!("took longer than {wall:?}"),
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => "cannot be heard".to_owned(),
        });
    };
    match (status.success(), read) {
        (true, Ok(Ok(bytes))) => Ok(bytes),
        (_, _) => Err(format!("failed with {status}, and what it complains of is not shown")),
    }
}

/// How a program ended, if it did before then.
fn until(child: &mut Child, moment: Instant) -> Option<ExitStatus> {
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if Instant::now() < moment => thread::sleep(COMMAND_PAUSE),
            Ok(None) | Err(_) => return None,
        }
    }
}

/// Where a program is. Folders that depend on the current one are passed over.
fn found(program: &str) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        let metadata = path.metadata();
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & 0o111 != 0)
    };
    if program.starts_with('/') {
        return Some(PathBuf::from(program)).filter(is_program);
    }
    let path = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(OsStr::new(&path)).filter(|folder| folder.is_absolute());
    folders.map(|folder| folder.join(program)).find(is_program)
}

//! The process that compiles: it bounds itself, reads a component, and writes what it compiled.

use std::io::{self, Read as _, Write as _};
use std::process::ExitCode;

/// The exit code for a component that is none.
pub(super) const INVALID: u8 = 3;
/// The exit code for all else that went wrong.
const FAILED: u8 = 4;

/// The files that the process may have open: the three that it was given, and few more.
#[cfg(unix)]
const OPEN_FILES_MAX: u64 = 16;

/// Compiles one component: reads it from the standard input, and writes what it compiled to the
/// standard output.
///
/// The arguments are those that a [`Helper`](crate::Helper) adds to its own. The process bounds its
/// own memory and processor time before it reads anything; it needs no files, and opens none for
/// writing. What it says about a component that is none stands on the standard error.
pub fn compile_helper(args: impl IntoIterator<Item = String>) -> ExitCode {
    match compile(&mut args.into_iter()) {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, why)) => {
            let _ = writeln!(io::stderr(), "{why}");
            ExitCode::from(code)
        }
    }
}

fn compile(args: &mut dyn Iterator<Item = String>) -> Result<(), (u8, String)> {
    let failed = |why: String| (FAILED, why);
    let mut number = |what: &str| {
        let number = args.next().and_then(|arg| arg.parse::<u64>().ok());
        number.ok_or_else(|| failed(format!("expected {what} as an argument")))
    };
    let (memory, cpu) = (number("bytes of memory")?, number("seconds of processor time")?);
    bound(memory, cpu).map_err(|err| failed(format!("no bounds could be set: {err}")))?;
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|err| failed(format!("the component cannot be read: {err}")))?;
    let artifact = super::compiled(&bytes).map_err(|why| (INVALID, why))?;
    let mut stdout = io::stdout().lock();
    let written = stdout.write_all(&artifact).and_then(|()| stdout.flush());
    written.map_err(|err| failed(format!("the compiled component cannot be written: {err}")))
}

/// Sets bounds that this process cannot lift again.
#[cfg(unix)]
fn bound(memory: u64, cpu: u64) -> io::Result<()> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let bounds = [
        (Resource::As, memory),
        (Resource::Cpu, cpu),
        (Resource::Core, 0),
        (Resource::Fsize, 0),
        (Resource::Nofile, OPEN_FILES_MAX),
    ];
    for (resource, bound) in bounds {
        // Nobody may raise what somebody else has bounded before.
        let most = getrlimit(resource).maximum.map_or(bound, |most| most.min(bound));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn bound(_: u64, _: u64) -> io::Result<()> {
    Ok(())
}

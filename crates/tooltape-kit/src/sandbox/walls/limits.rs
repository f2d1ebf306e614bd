//! What the kernel counts for each process.

use std::io;

use rustix::process::{Resource, Rlimit, setrlimit};

use crate::sandbox::command::{MEMORY_BYTES_MIN, ProcessLimits};

/// Limits this process and all that it will start.
pub(in crate::sandbox) fn set(limits: &ProcessLimits) -> io::Result<()> {
    let seconds = limits.cpu.as_secs().max(1);
    let set = [
        (Resource::As, limits.memory_bytes.max(MEMORY_BYTES_MIN)),
        (Resource::Cpu, seconds),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Nofile, limits.open_files),
        (Resource::Nproc, u64::from(limits.processes)),
        (Resource::Core, 0),
    ];
    for (resource, most) in set {
        // A host that allows less is right.
        let most = rustix::process::getrlimit(resource).maximum.map_or(most, |hard| hard.min(most));
        setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?;
    }
    Ok(())
}

//! What the first process may do before all others, and gives up for good.

use std::fs;

use rustix::mount::{MountFlags, mount_remount};
use rustix::thread::{
    CapabilitySet, CapabilitySets, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities,
};

/// The number from which processes are counted on once all smaller ones have been used.
const RESERVED: u32 = 300;
/// The first Linux in which a box has a number of its own.
const OWN_NUMBER: (u32, u32) = (6, 14);
/// What the first process has, and nobody after it.
const GIVEN: [CapabilitySet; 3] =
    [CapabilitySet::SYS_ADMIN, CapabilitySet::DAC_OVERRIDE, CapabilitySet::SETPCAP];

/// Has the kernel count the processes of the box, if it can. Says whether it does.
///
/// An older kernel would take it for a setting of the whole machine, so it is not even asked.
pub(in crate::sandbox) fn count(processes: u32) -> Result<bool, String> {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let mut numbers = release.split(['.', '-']).map(|number| number.trim().parse().unwrap_or(0));
    let release: (u32, u32) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    if release < OWN_NUMBER {
        return Ok(false);
    }
    let most = processes.saturating_add(RESERVED + 1).to_string();
    let written = fs::write("/proc/sys/kernel/pid_max", most);
    written.map(|()| true).map_err(|err| format!("`pid_max`: {err}"))
}

/// Makes the kernel's settings read-only, and gives up every privilege.
pub(in crate::sandbox) fn give_up() -> Result<(), String> {
    let flags = MountFlags::BIND | MountFlags::RDONLY;
    let flags = flags | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
    mount_remount("/proc", flags, "").map_err(|err| format!("`/proc`: {err}"))?;
    clear_ambient_capability_set().map_err(|err| err.to_string())?;
    for capability in GIVEN {
        remove_capability_from_bounding_set(capability).map_err(|err| err.to_string())?;
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets { effective: none, permitted: none, inheritable: none };
    set_capabilities(None, none).map_err(|err| err.to_string())
}

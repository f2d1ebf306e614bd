//! System calls that no process in a box has any business with.

use std::collections::BTreeMap;
use std::env::consts::ARCH;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

/// The bit that x32 sets in the number of a system call.
const X32: i64 = 0x4000_0000;

/// What is refused whatever it is asked.
const REFUSED: [i64; 64] = [
    // Other processes, and what they hold.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    // Namespaces and mounts.
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_mount_setattr,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_by_handle_at,
    libc::SYS_name_to_handle_at,
    libc::SYS_fanotify_init,
    libc::SYS_fanotify_mark,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    // Keys, programs in the kernel, and ways around this filter.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_bpf,
    libc::SYS_userfaultfd,
    libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // The machine.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_acct,
    libc::SYS_syslog,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
    libc::SYS_lookup_dcookie,
    libc::SYS_mbind,
    libc::SYS_set_mempolicy,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Who a process is.
    libc::SYS_setuid,
    libc::SYS_setgid,
    libc::SYS_setreuid,
    libc::SYS_setregid,
    libc::SYS_setresuid,
    libc::SYS_setresgid,
    libc::SYS_setgroups,
    libc::SYS_capset,
];

/// What programs are told this kernel does not have, so that they go on without it.
const UNKNOWN: [i64; 6] = [
    // Their flags are in memory, where no filter looks; there are older calls that do the same.
    libc::SYS_clone3,
    libc::SYS_openat2,
    // What they hold is no process's memory, and so within no limit.
    libc::SYS_memfd_create,
    libc::SYS_memfd_secret,
    libc::SYS_shmget,
    libc::SYS_msgget,
];

/// What only this architecture has.
#[cfg(target_arch = "x86_64")]
const OWN: [i64; 7] = [
    libc::SYS_kexec_file_load,
    libc::SYS_ioperm,
    libc::SYS_iopl,
    libc::SYS_modify_ldt,
    libc::SYS__sysctl,
    libc::SYS_uselib,
    libc::SYS_ustat,
];
#[cfg(not(target_arch = "x86_64"))]
const OWN: [i64; 0] = [];

/// Requests to a terminal or its screen that type for the user.
const IOCTLS: [u64; 3] = [libc::TIOCSTI, libc::TIOCLINUX, libc::TIOCSETD];
/// Flags that make a new namespace.
const NEW_NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWNS,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
    // Only of `clone3` and `unshare`, where it means a namespace of time.
    0,
];
/// Bits of a mode that let others run a file as its owner.
const SET_ID: [u64; 2] = [0o4000, 0o2000];
/// What sets the mode of a file, and which argument that is.
#[cfg(target_arch = "x86_64")]
const MODES: [(i64, u8); 7] = [
    (libc::SYS_creat, 1),
    (libc::SYS_mknod, 1),
    (libc::SYS_mknodat, 2),
    (libc::SYS_chmod, 1),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
];
#[cfg(not(target_arch = "x86_64"))]
const MODES: [(i64, u8); 4] = [
    (libc::SYS_mknodat, 2),
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (libc::SYS_fchmodat2, 2),
];
/// What may make a file, and where its flags are; its mode follows them.
#[cfg(target_arch = "x86_64")]
const OPENS: [(i64, u8); 2] = [(libc::SYS_open, 1), (libc::SYS_openat, 2)];
#[cfg(not(target_arch = "x86_64"))]
const OPENS: [(i64, u8); 1] = [(libc::SYS_openat, 2)];
/// Flags with which an opened file is a new one, the second without a name.
const NEW_FILES: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];
/// Families of sockets that reach nothing but the box itself.
const FAMILIES: [libc::c_int; 2] = [libc::AF_INET, libc::AF_INET6];

/// Filters the system calls of this process and of all that it will start.
pub(in crate::sandbox) fn filter() -> Result<(), String> {
    let refused = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    install(rules()?, refused)?;
    let unknown = SeccompAction::Errno(libc::ENOSYS.unsigned_abs());
    install(UNKNOWN.map(|call| (call, Vec::new())).into(), unknown)
}

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

fn rules() -> Result<Rules, String> {
    let dword = SeccompCmpArgLen::Dword;
    let condition = |argument, op, value| {
        SeccompCondition::new(argument, dword.clone(), op, value).map_err(|err| err.to_string())
    };
    let rule = |conditions| SeccompRule::new(conditions).map_err(|err| err.to_string());
    let flag = |bit: libc::c_int| u64::from(bit.unsigned_abs());
    let mut rules: Rules = REFUSED.into_iter().chain(OWN).map(|call| (call, Vec::new())).collect();
    let mut clones = Vec::new();
    for bit in NEW_NAMESPACES.map(flag).into_iter().filter(|bit| *bit != 0) {
        clones.push(rule(vec![condition(0, SeccompCmpOp::MaskedEq(bit), bit)?])?);
    }
    rules.insert(libc::SYS_clone, clones);
    let mut ioctls = Vec::new();
    for request in IOCTLS {
        // The kernel looks at the lower half only.
        ioctls.push(rule(vec![condition(1, SeccompCmpOp::Eq, request & 0xffff_ffff)?])?);
    }
    rules.insert(libc::SYS_ioctl, ioctls);
    let mut families = Vec::new();
    for family in FAMILIES.map(flag) {
        families.push(condition(0, SeccompCmpOp::Ne, family)?);
    }
    rules.insert(libc::SYS_socket, vec![rule(families)?]);
    // A pair is connected to itself, and to nobody else.
    let unix = flag(libc::AF_UNIX);
    let pairs = vec![rule(vec![condition(0, SeccompCmpOp::Ne, unix)?])?];
    rules.insert(libc::SYS_socketpair, pairs);
    let set_dumpable = flag(libc::PR_SET_DUMPABLE);
    let prctls = vec![rule(vec![condition(0, SeccompCmpOp::Eq, set_dumpable)?])?];
    rules.insert(libc::SYS_prctl, prctls);
    // A program that root made in a workspace must not make anybody else root.
    for (call, argument) in MODES {
        let masked = |bit| condition(argument, SeccompCmpOp::MaskedEq(bit), bit);
        let of = SET_ID.map(|bit| masked(bit).and_then(|bit| rule(vec![bit])));
        rules.insert(call, of.into_iter().collect::<Result<_, _>>()?);
    }
    for (call, argument) in OPENS {
        let masked = |argument, bit| condition(argument, SeccompCmpOp::MaskedEq(bit), bit);
        let of = NEW_FILES.map(flag).into_iter().flat_map(|new| SET_ID.map(|bit| (new, bit)));
        let of =
            of.map(|(new, bit)| rule(vec![masked(argument, new)?, masked(argument + 1, bit)?]));
        rules.insert(call, of.collect::<Result<_, _>>()?);
    }
    Ok(rules)
}

fn install(mut rules: Rules, action: SeccompAction) -> Result<(), String> {
    if cfg!(target_arch = "x86_64") {
        let x32: Vec<_> = rules.iter().map(|(call, of)| (call | X32, of.clone())).collect();
        rules.extend(x32);
    }
    let told = |err: seccompiler::BackendError| err.to_string();
    let arch = ARCH.try_into().map_err(told)?;
    let filter = SeccompFilter::new(rules, SeccompAction::Allow, action, arch).map_err(told)?;
    let program: BpfProgram = filter.try_into().map_err(told)?;
    apply_filter(&program).map_err(|err| err.to_string())
}

//! What attacks are aimed at: files, listeners, processes and names, each of which would show it.

use std::collections::BTreeMap;
use std::fs;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::lab::Lab;

/// What nobody in a box may ever get to read.
pub(crate) const TOKEN: &str = "CANARY-5f3b9a";
/// What an attack writes where it got through.
pub(crate) const ESCAPED: &str = "ESCAPED";
/// The names that nobody may make, change or replace.
const PROTECTED: [&str; 8] =
    [".git", ".tooltape", "tooltape.toml", ".mcp.json", ".vscode", ".idea", ".envrc", "git~1"];

/// A workspace with a repository in it, and everything around it that must stay as it is.
pub(crate) struct Scene {
    pub(crate) lab: Lab,
    victim: Child,
    ears: Ears,
    name: String,
    /// In the arguments of every process that an attack leaves behind.
    pub(crate) marker: String,
    before: BTreeMap<PathBuf, String>,
    protected: BTreeMap<PathBuf, String>,
}

impl Scene {
    pub(crate) fn new(number: usize) -> Scene {
        let lab = Lab::new();
        let outside = lab.folder().join("outside");
        fs::write(outside.join("canary"), TOKEN).unwrap();
        let ws = lab.at("");
        fs::create_dir_all(ws.join(".git/hooks")).unwrap();
        fs::create_dir_all(ws.join("sub/.git")).unwrap();
        fs::write(ws.join(".git/config"), "[core]\n").unwrap();
        fs::write(ws.join("sub/.git/config"), "[core]\n").unwrap();
        fs::write(ws.join("tooltape.toml"), "").unwrap();
        fs::write(ws.join("lib.pl"), library()).unwrap();
        std::os::unix::fs::symlink(&outside, ws.join("way_out")).unwrap();
        plant(&ws, int80());
        let name = format!("tooltape-{}-{number}", std::process::id());
        let ears = Ears::new(&lab, &name);
        let marker = format!("marker-{}-{number}-end", std::process::id());
        let victim = Command::new("perl")
            .args(["-e", "sleep 1000", TOKEN])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let before = tree(&outside);
        let protected = protected(&ws);
        Scene { lab, victim, ears, name, marker, before, protected }
    }

    /// The attack's text, with the places and numbers of this scene.
    pub(crate) fn spelled(&self, text: &str) -> String {
        let outside = self.lab.folder().join("outside");
        let tcp = self.ears.tcp.local_addr().unwrap().port();
        let udp = self.ears.udp.local_addr().unwrap().port();
        text.replace("{out}", outside.to_str().unwrap())
            .replace("{tcp}", &tcp.to_string())
            .replace("{udp}", &udp.to_string())
            .replace("{abstract}", &self.name)
            .replace("{pid}", &std::process::id().to_string())
            .replace("{victim}", &self.victim.id().to_string())
            .replace("{marker}", &self.marker)
            .replace("{ws}", self.lab.at("").to_str().unwrap().trim_end_matches('/'))
    }

    /// What the attack reached, seen from outside.
    pub(crate) fn breaches(&mut self, said: &str) -> Vec<&'static str> {
        let mut breaches = Vec::new();
        let mut check = |is_breached: bool, what| {
            if is_breached {
                breaches.push(what);
            }
        };
        check(said.contains(TOKEN), "read");
        check(said.contains(ESCAPED), "escaped");
        check(tree(&self.lab.folder().join("outside")) != self.before, "wrote");
        check(protected(&self.lab.at("")) != self.protected, "planted");
        check(self.lab.at("hijacked").exists(), "hijacked");
        check(lets_others_be_us(&self.lab.at("")), "empowered");
        check(self.ears.have_heard(), "connected");
        check(self.victim.try_wait().unwrap().is_some(), "killed");
        check(!survivors(&self.marker).is_empty(), "survived");
        breaches
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        let _ = self.victim.kill();
        let _ = self.victim.wait();
    }
}

/// Everywhere that somebody could come to, in every way that there is on this machine.
struct Ears {
    tcp: TcpListener,
    udp: UdpSocket,
    unix: [UnixListener; 3],
}

impl Ears {
    fn new(lab: &Lab, name: &str) -> Ears {
        let tcp = TcpListener::bind("127.0.0.1:0").unwrap();
        let udp = UdpSocket::bind("127.0.0.1:0").unwrap();
        let outside = UnixListener::bind(lab.folder().join("outside/socket")).unwrap();
        let inside = UnixListener::bind(lab.at("socket")).unwrap();
        let address = SocketAddr::from_abstract_name(name).unwrap();
        let unix = [outside, inside, UnixListener::bind_addr(&address).unwrap()];
        // Whoever came waits in line, so it is enough to look at the end.
        tcp.set_nonblocking(true).unwrap();
        udp.set_nonblocking(true).unwrap();
        unix.iter().for_each(|listener| listener.set_nonblocking(true).unwrap());
        Ears { tcp, udp, unix }
    }

    fn have_heard(&self) -> bool {
        self.tcp.accept().is_ok()
            || self.udp.recv(&mut [0; 8]).is_ok()
            || self.unix.iter().any(|listener| listener.accept().is_ok())
    }
}

/// Programs that wait in the workspace for somebody to run them by mistake.
fn plant(ws: &Path, int80: Vec<u8>) {
    for name in ["ls", "git", "sh", "bash", "bwrap", "tooltape-sandbox", "env"] {
        program(&ws.join(name), b"#!/bin/sh\n/usr/bin/touch \"${0%/*}/hijacked\"\n");
    }
    program(&ws.join("int80"), &int80);
}

fn program(path: &Path, bytes: &[u8]) {
    fs::write(path, bytes).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Whether a file of the workspace runs as its owner, whoever runs it.
fn lets_others_be_us(ws: &Path) -> bool {
    let entries = fs::read_dir(ws).unwrap().flatten();
    let mut modes = entries.filter_map(|entry| Some(entry.metadata().ok()?.mode()));
    modes.any(|mode| mode & 0o170_000 == 0o100_000 && mode & 0o6000 != 0)
}

/// Every path below a folder, with all that can be changed about it.
fn tree(folder: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            let entries = fs::read_dir(&path).unwrap();
            waiting.extend(entries.map(|entry| entry.unwrap().path()));
        }
        let content = if metadata.is_file() { fs::read(&path).unwrap_or_default() } else { vec![] };
        let of = (metadata.mode(), metadata.uid(), metadata.gid(), metadata.nlink());
        let times = (metadata.mtime(), metadata.mtime_nsec(), metadata.ctime_nsec());
        found.insert(path, format!("{of:?} {times:?} {}", String::from_utf8_lossy(&content)));
    }
    found
}

/// Everything under a protected name, anywhere below a folder, as its content.
fn protected(ws: &Path) -> BTreeMap<PathBuf, String> {
    let is_protected = |path: &Path| {
        let names = path.strip_prefix(ws).unwrap().components();
        let names = names.map(|name| name.as_os_str().to_string_lossy().to_lowercase());
        names.into_iter().any(|name| {
            let name = name.replace('\u{200c}', "");
            let name = name.split(':').next().unwrap().trim_end_matches(['.', ' ']);
            PROTECTED.contains(&name)
        })
    };
    let mut found = BTreeMap::new();
    let mut waiting = vec![ws.to_owned()];
    while let Some(path) = waiting.pop() {
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
        if metadata.is_dir() {
            // What an attack hides from us, root would still see.
            if fs::read_dir(&path).is_err() {
                fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
            }
            let entries = fs::read_dir(&path).unwrap();
            waiting.extend(entries.map(|entry| entry.unwrap().path()));
        }
        if is_protected(&path) {
            let content = fs::read_to_string(&path).unwrap_or_default();
            found.insert(path, format!("{:o} {content}", metadata.mode()));
        }
    }
    found
}

/// The processes of this machine that have a word in their arguments.
pub(crate) fn survivors(marker: &str) -> Vec<u32> {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let is_marked = |pid: &u32| {
        let text = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        *pid != std::process::id() && String::from_utf8_lossy(&text).contains(marker)
    };
    pids.filter(is_marked).collect()
}

/// What attacks in Perl have in common; it is on every Debian, and can make any system call.
fn library() -> String {
    let calls = [
        ("ptrace", libc::SYS_ptrace),
        ("mount", libc::SYS_mount),
        ("umount2", libc::SYS_umount2),
        ("unshare", libc::SYS_unshare),
        ("setns", libc::SYS_setns),
        ("clone", libc::SYS_clone),
        ("clone3", libc::SYS_clone3),
        ("keyctl", libc::SYS_keyctl),
        ("add_key", libc::SYS_add_key),
        ("bpf", libc::SYS_bpf),
        ("userfaultfd", libc::SYS_userfaultfd),
        ("kexec_load", libc::SYS_kexec_load),
        ("io_uring_setup", libc::SYS_io_uring_setup),
        ("perf_event_open", libc::SYS_perf_event_open),
        ("process_vm_readv", libc::SYS_process_vm_readv),
        ("process_vm_writev", libc::SYS_process_vm_writev),
        ("pidfd_open", libc::SYS_pidfd_open),
        ("pidfd_getfd", libc::SYS_pidfd_getfd),
        ("pivot_root", libc::SYS_pivot_root),
        ("chroot", libc::SYS_chroot),
        ("open_tree", libc::SYS_open_tree),
        ("fsopen", libc::SYS_fsopen),
        ("move_mount", libc::SYS_move_mount),
        ("open_by_handle_at", libc::SYS_open_by_handle_at),
        ("name_to_handle_at", libc::SYS_name_to_handle_at),
        ("init_module", libc::SYS_init_module),
        ("swapon", libc::SYS_swapon),
        ("mknodat", libc::SYS_mknodat),
        ("setuid", libc::SYS_setuid),
        ("sethostname", libc::SYS_sethostname),
        ("clock_settime", libc::SYS_clock_settime),
        ("syslog", libc::SYS_syslog),
        ("kcmp", libc::SYS_kcmp),
        ("fanotify_init", libc::SYS_fanotify_init),
        ("acct", libc::SYS_acct),
        ("socket", libc::SYS_socket),
        ("capset", libc::SYS_capset),
    ];
    let calls = calls.map(|(name, number)| format!("{name} => {number},")).concat();
    format!(
        "use Socket; our %SYS = ({calls});\n\
         sub call {{ my ($name, @args) = @_; my $got = syscall($SYS{{$name}}, @args);\n\
         print \"{ESCAPED} $name $got\\n\" if $got >= 0; return $got; }}\n\
         sub opens {{ my ($path, $mode) = @_; \n\
         if (open(my $file, $mode, $path)) {{ print \"{ESCAPED} $path\\n\"; }} }}\n\
         sub dials {{ my ($family, $kind, $to) = @_; socket(my $s, $family, $kind, 0) or return;\n\
         connect($s, $to) or return; send($s, 'x', 0); sleep 0; }}\n1;\n"
    )
}

/// A program of 64 bits that makes a system call as one of 32 bits does, and tells if it lives.
fn int80() -> Vec<u8> {
    const HEADER: usize = 64 + 56;
    const BASE: u64 = 0x40_0000;
    let mut code = vec![
        0xb8, 26, 0, 0, 0, // mov eax, 26: ptrace
        0x31, 0xdb, // xor ebx, ebx: that the parent may trace it
        0xcd, 0x80, // int 0x80
        0xb8, 1, 0, 0, 0, // mov eax, 1: write
        0xbf, 1, 0, 0, 0, // mov edi, 1
        0x48, 0x8d, 0x35, 16, 0, 0, 0, // lea rsi, [rip + 16]
        0xba, 7, 0, 0, 0, // mov edx, 7
        0x0f, 0x05, // syscall
        0xb8, 60, 0, 0, 0, // mov eax, 60: exit
        0x0f, 0x05, // syscall
        0x90, 0x90,
    ];
    code.extend(ESCAPED.bytes());
    let mut elf = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0\x02\0\x3e\0\x01\0\0\0".to_vec();
    elf.extend((BASE + HEADER as u64).to_le_bytes());
    elf.extend(64_u64.to_le_bytes());
    elf.extend(0_u64.to_le_bytes());
    elf.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    elf.extend([1, 0, 0, 0, 5, 0, 0, 0]);
    let size = (HEADER + code.len()) as u64;
    for word in [0, BASE, BASE, size, size, 0x1000] {
        elf.extend(word.to_le_bytes());
    }
    elf.extend(code);
    elf
}

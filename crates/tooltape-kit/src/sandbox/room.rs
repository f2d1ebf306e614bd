//! What a box looks like from within: mounts, names and namespaces, as `bwrap` makes them.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

use rustix::io::{FdFlags, fcntl_setfd};

use super::command::Files;
use super::overlay::{LOWER, OVER};
use super::protocol::{HELPER, Request, WORKSPACE};
use super::sweep::Held;

/// Who a process is, within.
const USER: &str = "1000";
/// The most bytes of `/dev`, which has memory shared between processes in it.
const DEV_BYTES_MAX: u64 = 64 << 20;

/// What is there of the system, as far as it is a folder.
const SYSTEM: [&str; 6] = ["/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32"];
/// What programs need to know of the system. No secret is among it.
const ETC: [&str; 2] = ["/etc/alternatives", "/etc/ld.so.cache"];
/// Where the time is told, which is a link into `/usr`.
const LOCALTIME: &str = "/etc/localtime";
const DEVICES: [&str; 5] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"];
const LINKS: [(&str, &str); 4] = [
    ("/proc/self/fd", "/dev/fd"),
    ("/proc/self/fd/0", "/dev/stdin"),
    ("/proc/self/fd/1", "/dev/stdout"),
    ("/proc/self/fd/2", "/dev/stderr"),
];
const PASSWD: &str = "user:x:1000:1000::/tmp:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n";
const GROUP: &str = "user:x:1000:\nnogroup:x:65534:\n";
const HOSTS: &str = "127.0.0.1 localhost\n::1 localhost\n";

/// The arguments of `bwrap`, and the files that they name by number.
#[derive(Default)]
pub(super) struct Room {
    pub(super) args: Vec<OsString>,
    inherited: Vec<OwnedFd>,
}

impl Room {
    /// The room for a request, with what the process must find as it is.
    pub(super) fn new(
        request: &Request,
        root: Option<OwnedFd>,
        held: Vec<Held>,
    ) -> io::Result<Room> {
        let mut room = Room::default();
        room.add(["--unshare-all", "--die-with-parent", "--new-session", "--as-pid-1"]);
        // The first process gives up what it has before there is a second one.
        room.add(["--cap-drop", "ALL", "--cap-add", "CAP_SYS_ADMIN", "--cap-add", "CAP_SETPCAP"]);
        room.add(["--clearenv", "--hostname", "tooltape"]);
        room.add(["--uid", USER, "--gid", USER]);
        room.system()?;
        let scratch = request.limits.scratch_bytes.to_string();
        room.add(["--perms", "1777", "--size", &scratch, "--tmpfs", "/tmp"]);
        // What is in the host's own folder for temporary files can be shown, too.
        for path in &request.exposed {
            room.add(["--ro-bind".as_ref(), path.as_os_str(), path.as_os_str()]);
        }
        room.bind(File::open("/proc/self/exe")?.into(), Files::Read, HELPER)?;
        match root {
            Some(root) if request.is_preview => {
                room.bind(root, Files::Read, LOWER)?;
                // The kernel keeps a folder for itself there that nobody may open.
                room.add(["--cap-add", "CAP_DAC_OVERRIDE"]);
                room.add(["--size", &scratch, "--tmpfs", OVER, "--dir", WORKSPACE]);
            }
            Some(root) => room.bind(root, request.files, WORKSPACE)?,
            None => {}
        }
        for Held { path, handle } in held {
            room.bind(handle, Files::Read, Path::new(WORKSPACE).join(path))?;
        }
        room.add(["--remount-ro", "/", "--chdir", "/"]);
        Ok(room)
    }

    fn system(&mut self) -> io::Result<()> {
        self.add(["--ro-bind", "/usr", "/usr"]);
        for path in SYSTEM.map(Path::new).into_iter().filter(|path| path.exists()) {
            match path.read_link() {
                Ok(target) => self.add(["--symlink".as_ref(), target.as_os_str(), path.as_ref()]),
                Err(_) => self.add(["--ro-bind".as_ref(), path.as_os_str(), path.as_ref()]),
            }
        }
        self.add(["--perms", "0755", "--dir", "/etc", "--perms", "0755", "--dir", "/run"]);
        // Each mount costs `bwrap` a look at all others, so what can be copied is.
        for path in ETC {
            self.add(["--ro-bind-try", path, path]);
        }
        if let Ok(target) = Path::new(LOCALTIME).read_link() {
            self.add(["--symlink".as_ref(), target.as_os_str(), LOCALTIME.as_ref()]);
        }
        for (text, path) in [(PASSWD, "/etc/passwd"), (GROUP, "/etc/group"), (HOSTS, "/etc/hosts")]
        {
            let file = filled(text)?;
            let number = self.inherit(file)?;
            self.add(["--perms", "0644", "--file", &number, path]);
        }
        self.add(["--proc", "/proc"]);
        self.add(["--size", &DEV_BYTES_MAX.to_string(), "--tmpfs", "/dev"]);
        for path in DEVICES {
            self.add(["--dev-bind", path, path]);
        }
        for (target, path) in LINKS {
            self.add(["--symlink", target, path]);
        }
        self.add(["--perms", "1777", "--dir", "/dev/shm"]);
        Ok(())
    }

    fn add<T: AsRef<std::ffi::OsStr>>(&mut self, args: impl IntoIterator<Item = T>) {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
    }

    fn bind(&mut self, of: OwnedFd, files: Files, at: impl AsRef<Path>) -> io::Result<()> {
        let option = match files {
            Files::None => return Ok(()),
            Files::Read => "--ro-bind-fd",
            Files::Write => "--bind-fd",
        };
        let number = self.inherit(of)?;
        self.add([option.as_ref(), number.as_ref(), at.as_ref().as_os_str()]);
        Ok(())
    }

    /// Lets the next program have a file; returns the number by which it knows it.
    pub(super) fn inherit(&mut self, file: OwnedFd) -> io::Result<String> {
        fcntl_setfd(file.as_fd(), FdFlags::empty())?;
        let number = file.as_raw_fd().to_string();
        self.inherited.push(file);
        Ok(number)
    }
}

/// A file to be read once that holds a short text.
fn filled(text: &str) -> io::Result<OwnedFd> {
    let (from, to) = io::pipe()?;
    io::Write::write_all(&mut &to, text.as_bytes())?;
    Ok(from.into())
}

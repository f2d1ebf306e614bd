//! The same test by every user that it matters for, each in a process of its own.

use std::env;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Set in the process that is to do the work.
const INSIDE: &str = "TOOLTAPE_TEST_INSIDE";
/// Who may do nothing that others may not.
const NOBODY: u32 = 65_534;

/// Does the work as the user who runs the tests, and as nobody, where root runs them.
pub(crate) fn each(test: &str, work: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() || !rustix::process::geteuid().is_root() {
        if env::var_os(INSIDE).is_none() {
            println!("{test}: only as this user, who is not root");
        }
        return work();
    }
    work();
    let folder = tempfile::tempdir().unwrap();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).unwrap();
    let program = folder.path().join("it");
    std::fs::copy(env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(program);
    command.uid(NOBODY).gid(NOBODY).current_dir("/").env("TMPDIR", "/tmp");
    again(command, test);
}

/// Does the work in a process that has these variables.
pub(crate) fn with_variables(test: &str, variables: &[(&str, &str)], work: impl FnOnce()) {
    if env::var_os(INSIDE).is_some() {
        return work();
    }
    let mut command = Command::new(env::current_exe().unwrap());
    command.envs(variables.iter().copied());
    again(command, test);
}

fn again(mut command: Command, test: &str) {
    let output = command.args(["--exact", test, "--nocapture"]).env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    print!("{said}");
    assert!(output.status.success() && said.contains("1 passed"), "{said}{errors}");
}

//! Whoever starts a test: as root, the same test is made by an ordinary user too.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command};

/// The variable that says for whom a test runs again.
const AGAIN: &str = "TOOLTAPE_TEST_AGAIN_AS";
/// A user without any right of its own.
const NOBODY: u32 = 65_534;

/// Runs a test as this user and, where that is root, as an ordinary one beside it.
pub(crate) fn as_each(test: &str, body: impl FnOnce(&str)) {
    let uid = rustix::process::getuid().as_raw();
    if uid != 0 {
        if std::env::var_os(AGAIN).is_none() {
            eprintln!("{test}: started by uid {uid}, so not tried as root");
        }
        return body(&format!("uid {uid}"));
    }
    let folder = tempfile::tempdir().unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let program = folder.path().join("it");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let again = Command::new(&program)
        .args(["--exact", test, "--nocapture"])
        .env(AGAIN, "nobody")
        .current_dir(folder.path())
        .uid(NOBODY)
        .gid(NOBODY)
        .spawn()
        .unwrap();
    let mut again = Ended(again);
    body("root");
    assert!(again.0.wait().unwrap().success(), "{test} failed as uid {NOBODY}");
}

/// Runs a test in a process of its own that has these variables.
pub(crate) fn with_variables(test: &str, variables: &[(&str, &str)], body: impl FnOnce()) {
    if std::env::var_os(AGAIN).is_some() {
        return body();
    }
    let status = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture"])
        .env(AGAIN, "this user")
        .envs(variables.iter().copied())
        .status();
    assert!(status.unwrap().success(), "{test} failed with {variables:?}");
}

/// A test that runs again ends with the one that started it.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

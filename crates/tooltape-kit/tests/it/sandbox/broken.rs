//! EX-15: where a part of the sandbox is missing, nothing runs, and the part is named.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::json;
use tooltape::Executed;
use tooltape_kit::{Command, Helper, Part, Sandbox, SandboxError, survey};

use super::lab::{Lab, helper};
use crate::world::code;

/// A program that is not what it says.
fn fake(folder: &Path, script: &str) -> PathBuf {
    let path = folder.join("fake");
    fs::write(&path, format!("#!/bin/bash\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    path
}

fn part_of(made: Result<Sandbox, SandboxError>) -> (Part, String) {
    match made {
        Err(SandboxError::Missing { part, why }) => (part, why),
        Err(err) => panic!("{err}"),
        Ok(_) => panic!("there is no such sandbox"),
    }
}

#[test]
fn a_part_that_is_missing_is_named_and_nothing_runs() {
    let folder = tempfile::tempdir().unwrap();
    let canary = folder.path().join("ran");
    let bwrap = "/usr/bin/bwrap";
    // Each of them says what it says on machines where that part does not work.
    let denied = "bwrap: No permissions to create new namespace, likely because the kernel does \
                  not allow non-privileged user namespaces";
    let skip = "while [ \"$1\" != -- ]; do shift; done; shift";
    let cases = [
        ("exit 1".to_owned(), Part::Helper),
        ("exit 0".to_owned(), Part::Helper),
        ("kill -9 $$".to_owned(), Part::Helper),
        (format!("echo '{denied}' >&2; exit 1"), Part::Namespaces),
        (
            "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1".into(),
            Part::Namespaces,
        ),
        ("echo 'bwrap: Unknown option --bind-fd' >&2; exit 1".into(), Part::Bubblewrap),
        // One that only pretends: the first process within finds out.
        (format!("{skip}; exec \"$@\""), Part::Helper),
        (format!("touch {}; exit 0", canary.display()), Part::Helper),
    ];
    for (script, expected) in cases {
        let bwrap = fake(folder.path(), &script);
        let (part, why) = part_of(Sandbox::with_bwrap(helper(), &bwrap));
        assert_eq!(part, expected, "{script}: {why}");
    }
    let (part, why) = part_of(Sandbox::with_bwrap(helper(), folder.path().join("gone")));
    assert!(part == Part::Bubblewrap && why.starts_with("found no `/"), "{why}");
    let gone = Helper::new(folder.path().join("gone"), [""; 0]);
    assert_eq!(part_of(Sandbox::with_bwrap(gone, bwrap)).0, Part::Helper);
    let dumb = Helper::new("/bin/true", [""; 0]);
    assert_eq!(part_of(Sandbox::with_bwrap(dumb, bwrap)).0, Part::Helper);
}

#[test]
fn a_kernel_without_landlock_or_seccomp_is_refused() {
    // `bwrap` itself installs filters, so it can make a kernel that lacks a system call.
    let folder = tempfile::tempdir().unwrap();
    for (call, part) in [
        (libc::SYS_landlock_create_ruleset, Part::Landlock),
        (libc::SYS_landlock_restrict_self, Part::Landlock),
        (libc::SYS_seccomp, Part::Seccomp),
        (libc::SYS_close_range, Part::Helper),
        (libc::SYS_prlimit64, Part::Helper),
    ] {
        let filter = folder.path().join("filter");
        fs::write(&filter, unknown(u32::try_from(call).unwrap())).unwrap();
        let script =
            format!("exec 88<{}\nexec /usr/bin/bwrap --seccomp 88 \"$@\"", filter.display());
        let bwrap = fake(folder.path(), &script);
        let (found, why) = part_of(Sandbox::with_bwrap(helper(), &bwrap));
        assert_eq!(found, part, "{call}: {why}");
    }
}

/// A filter for which one system call does not exist.
fn unknown(call: u32) -> Vec<u8> {
    let enosys = 0x0005_0000 | libc::ENOSYS.unsigned_abs();
    let program: [(u16, u8, u8, u32); 4] =
        [(0x20, 0, 0, 0), (0x15, 0, 1, call), (0x06, 0, 0, enosys), (0x06, 0, 0, 0x7fff_0000)];
    let bytes = program.iter().flat_map(|(code, yes, no, value)| {
        [&code.to_le_bytes()[..], &[*yes, *no], &value.to_le_bytes()].concat()
    });
    bytes.collect()
}

#[test]
fn a_survey_finds_every_part() {
    let findings = survey(helper());
    let parts: Vec<_> = findings.iter().map(|finding| finding.part.word()).collect();
    let expected =
        ["platform", "bubblewrap", "namespaces", "landlock", "seccomp", "limits", "helper"];
    assert_eq!(parts, expected);
    assert!(findings.iter().all(|it| it.works && it.hint.is_none()), "{findings:?}");
    let findings = survey(Helper::new("/nowhere", [""; 0]));
    let helper = findings.iter().find(|finding| finding.part == Part::Helper).unwrap();
    assert!(!helper.works && helper.hint.is_some(), "{helper:?}");
}

#[test]
fn what_cannot_be_run_is_refused_before_anything_happens() {
    let sandbox = super::lab::sandbox();
    let long = "x".repeat(tooltape_kit::limits::ARGV_BYTES_MAX);
    for command in [
        Command::new([""; 0]),
        Command::new([""]),
        Command::new(["true", "a\0b"]),
        Command::new(["true", &long]),
        Command::new(["true"]).env("", "x"),
        Command::new(["true"]).env("a=b", "x"),
    ] {
        let refusal = sandbox.start(None, command).err().unwrap();
        assert_eq!(refusal.code(), "not_a_command", "{refusal}");
    }
}

#[test]
fn a_run_without_a_sandbox_refuses_processes_and_nothing_else() {
    let lab = Lab::with(Sandbox::when_needed(Helper::new("/nowhere", [""; 0])));
    for _ in 0..2 {
        let reply = lab.call("shell", &json!({"command": "echo x > made"}));
        assert_eq!(code(&reply), "sandbox_missing");
        assert_eq!(reply.executed, Executed::NotExecuted);
        let text = reply.text();
        assert!(text.starts_with("not executed: there is no sandbox, since `helper`"), "{text}");
    }
    assert!(!lab.at("made").exists());
    let lab = Lab::with(Sandbox::when_needed(helper()));
    assert_eq!(lab.shell("echo x > made")["exit_code"], 0);
    assert!(lab.at("made").exists());
}

//! Secrets that the configuration names: who gets them, who may name them, and what is refused.

use std::fs;
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use crate::home::{Home, Ran};
use crate::own_tools::program;

const TOKEN: &str = "ghp_Canary7h9x2kLmQv4";

/// A home for the program whose tools take secrets. Those that it does not take are disabled.
pub(crate) fn home(config: &str) -> Home {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let home = Home::of(PROGRAM.get_or_init(|| program("secretive")).clone());
    home.write(home.user_config(), config);
    home.with("FORGE_TOKEN", TOKEN).with("TOOLTAPE_TOOLS_DISABLE", "weigh")
}

fn measured(home: &Home) -> String {
    let ran = home.run(&["call", "measure", "-q"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

/// Nothing was done, and nobody was shown what must not be.
fn refused(ran: &Ran, code: &str, place: &str, why: &str) {
    assert_eq!(ran.code, 2, "{}", ran.stderr);
    let error = ran.error();
    assert_eq!(error["code"], code, "{error}");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(place) && message.contains(why), "{message}");
    assert_eq!(error["executed"], "not_executed");
    assert!(!ran.stderr.contains("Canary") && ran.stdout.is_empty(), "{}", ran.stderr);
}

#[test]
fn a_secret_is_read_from_a_variable_a_file_or_a_program() {
    let length = TOKEN.len().to_string();
    assert_eq!(measured(&home("[secrets.forge]\nenv = \"FORGE_TOKEN\"\n")), length);
    for end in ["", "\n", "\r\n"] {
        let home = home("[secrets.forge]\nfile = \"token\"\n");
        home.write("../config/tooltape/token", &format!("{TOKEN}{end}"));
        assert_eq!(measured(&home), length, "with {end:?} behind it");
    }
    let command = r#"command = ["printf", "%s\\n", "$(id) ; `id` && é"]"#;
    // No shell ever sees it.
    assert_eq!(measured(&home(&format!("[secrets.forge]\n{command}\n"))), "18");
}

#[test]
fn a_secret_of_bytes_need_not_be_text() {
    let home =
        home("[secrets.seal]\nfile = \"seal\"\n").with("TOOLTAPE_TOOLS_DISABLE", "spill,measure");
    fs::write(home.here().join("../config/tooltape/seal"), [0xff, 0, 1, 2, 3, 0x80, 9]).unwrap();
    let ran = home.run(&["call", "weigh", "-q"]);
    assert_eq!((ran.code, ran.stdout.trim()), (0, "7"), "{}", ran.stderr);
}

#[test]
fn a_secret_that_nobody_names_is_missed_before_anything_happens() {
    let ran = home("").run(&["call", "measure", "--json"]);
    refused(&ran, "secret.missing", "`measure` needs `ForgeToken`, the secret `forge`", "granted");
    let hint = ran.error()["hint"].as_str().unwrap().to_owned();
    assert!(hint.contains("`[secrets.forge]` and `env = \"VARIABLE\"`"), "{hint}");
}

#[test]
fn a_secret_that_cannot_be_read_is_refused_with_its_place() {
    let long = "x".repeat((16 << 10) + 1);
    let files = [("empty", ""), ("newline", "\n"), ("short", "12345\n"), ("long", &long)];
    for (says, why) in [
        ("env = \"NOT_SET\"", "the variable `NOT_SET` is not set"),
        ("file = \"none\"", "No such file"),
        ("file = \".\"", "it is not a file"),
        ("file = \"pipe\"", "it is not a file"),
        ("file = \"empty\"", "is empty"),
        ("file = \"newline\"", "is empty"),
        ("file = \"short\"", "has 5 bytes, expected at least 6 to look for it"),
        ("file = \"long\"", "has more than 16384 bytes"),
        ("command = [\"no-such-program\"]", "`no-such-program` is not there"),
        ("command = [\"false\"]", "failed with exit status: 1"),
        ("command = [\"sh\", \"-c\", \"echo Canary >&2; exit 3\"]", "failed with exit status: 3"),
        ("command = [\"cat\", \"long\"]", "has more than 16384 bytes"),
        ("command = [\"yes\"]", "prints more than 16384 bytes"),
        ("command = [\"sleep\", \"1000\"]\nseconds = 1", "took longer than 1s"),
        (
            "command = [\"sh\", \"-c\", \"exec >&-; sleep 1000\"]\nseconds = 1",
            "took longer than 1s",
        ),
    ] {
        let home = home(&format!("[secrets.forge]\n{says}\n"));
        for (name, text) in &files {
            home.write(&format!("../config/tooltape/{name}"), text);
        }
        let pipe = home.here().join("../config/tooltape/pipe");
        assert!(Command::new("mkfifo").arg(pipe).status().unwrap().success());
        let ran = home.run(&["call", "measure", "--json"]);
        refused(&ran, "secret.unreadable", "config.toml:2:", why);
        assert_eq!(home.copies().len(), 0);
    }
}

#[test]
fn a_text_that_is_none_is_refused() {
    let home = home("[secrets.forge]\nfile = \"token\"\n");
    fs::write(home.here().join("../config/tooltape/token"), [0xff; 20]).unwrap();
    let ran = home.run(&["call", "measure", "--json"]);
    refused(&ran, "secret.unusable", "config.toml:1:", "is not UTF-8, and `ForgeToken` is a text");
    // Also where it comes from a variable.
    let config = "[secrets.forge]\nenv = \"TOKEN\"\n";
    home.write(home.user_config(), config);
    let mut command = home.command(&["call", "measure", "--json"]);
    command.env("TOKEN", std::ffi::OsString::from_vec(vec![0xfe; 12]));
    let ran = home.ran(command.output().unwrap());
    refused(&ran, "secret.unusable", "config.toml:1:", "is not UTF-8");
}

#[test]
fn what_is_no_secret_is_refused_and_never_shown() {
    for (config, why) in [
        ("[secrets.forge]\n", "expected exactly one of `env`, `file` and `command`"),
        ("[secrets.forge]\nenv = \"A\"\nfile = \"b\"\n", "expected exactly one of"),
        ("[secrets.forge]\nenv = \"A B\"\n", "variable"),
        ("[secrets.forge]\nenv = \"\"\n", "variable"),
        ("[secrets.forge]\nfile = \"\"\n", "expected a path, found nothing"),
        ("[secrets.forge]\ncommand = []\n", "expected a program and its arguments"),
        ("[secrets.forge]\ncommand = [\"\"]\n", "expected a program and its arguments"),
        ("[secrets.forge]\ncommand = [\"./get\"]\n", "depends on the current folder"),
        ("[secrets.forge]\ncommand = [\"a\\u0000b\"]\n", "NUL"),
        ("[secrets.forge]\ncommand = \"pass show x\"\n", "invalid type: string"),
        ("[secrets.forge]\nenv = \"A\"\nseconds = 3\n", "only a `command` takes time"),
        ("[secrets.forge]\ncommand = [\"a\"]\nseconds = 0\n", "zero"),
        ("[secrets.\"a b\"]\nenv = \"A\"\n", "name"),
        ("[secrets.forge]\nvalue = \"ghp_Canary7h9x2\"\n", "unknown field `value`"),
        ("[secrets]\nforge = \"ghp_Canary7h9x2\"\n", "expected a table"),
        ("secrets = \"ghp_Canary7h9x2\"\n", "expected"),
        ("[secrets.forge]\nenv = \"ghp_Canary7h9x2\n", "string"),
    ] {
        let home = home(config);
        let ran = home.run(&["call", "measure", "--json"]);
        refused(&ran, "config.invalid", "config.toml:", why);
        // Nor where the place is drawn.
        let drawn = home.run(&["call", "measure"]);
        assert!(!drawn.stderr.contains("Canary"), "{}", drawn.stderr);
    }
}

#[test]
fn a_project_reads_no_variable_runs_no_program_and_leaves_no_folder() {
    let canary = "command = [\"touch\", \"../ran\"]";
    for (says, why) in [
        ("env = \"AWS_SECRET\"", "a project names only files in its own folder"),
        (canary, "a project names only files in its own folder"),
        ("file = \"/etc/hostname\"", "leaves the folder of this file"),
        ("file = \"../outside\"", "leaves the folder of this file"),
        ("file = \"link\"", "leaves the folder of this file"),
        ("file = \"folder/outside\"", "leaves the folder of this file"),
    ] {
        let home = home("").with("AWS_SECRET", "aws-Canary-secret");
        home.write("../outside", TOKEN)
            .write("tooltape.toml", &format!("[secrets.forge]\n{says}\n"));
        symlink("../outside", home.here().join("link")).unwrap();
        symlink("..", home.here().join("folder")).unwrap();
        let ran = home.run(&["call", "measure", "--json"]);
        refused(&ran, "config.invalid", "tooltape.toml:2:", why);
        assert!(!home.here().join("../ran").exists(), "the project's program ran");
    }
    // In its own folder it may.
    let home = home("");
    home.write("keys/token", TOKEN)
        .write("tooltape.toml", "[secrets.forge]\nfile = \"keys/token\"\n");
    assert_eq!(measured(&home), TOKEN.len().to_string());
}

#[test]
fn the_user_decides_where_a_secret_is_read_from_whatever_the_project_says() {
    for says in ["env = \"AWS_SECRET\"", "command = [\"touch\", \"../ran\"]", "file = \"planted\""]
    {
        let home =
            home("[secrets.forge]\nenv = \"FORGE_TOKEN\"\n").with("AWS_SECRET", "aws-secret-1");
        home.write("planted", "planted by the project")
            .write("tooltape.toml", &format!("[secrets.forge]\n{says}\n"));
        assert_eq!(measured(&home), TOKEN.len().to_string());
        assert!(!home.here().join("../ran").exists());
    }
    // Another secret of the user's is no leave to read its variable under this name.
    let home = home("[secrets.other]\nenv = \"FORGE_TOKEN\"\n");
    home.write("tooltape.toml", "[secrets.forge]\nenv = \"FORGE_TOKEN\"\n");
    let ran = home.run(&["call", "measure", "--json"]);
    refused(&ran, "config.invalid", "tooltape.toml:2:", "a project names only files");
}

#[test]
fn a_program_is_not_found_in_the_current_folder_and_does_not_see_other_secrets() {
    let home = home("[secrets.forge]\ncommand = [\"get-token\"]\n");
    home.write("get-token", "#!/bin/sh\ntouch ../ran\necho stolen-token\n");
    fs::set_permissions(home.here().join("get-token"), fs::Permissions::from_mode(0o755)).unwrap();
    for path in ["", ".", ".:/usr/bin:/bin", ":/usr/bin:/bin", "here:/bin"] {
        let mut command = home.command(&["call", "measure", "--json"]);
        let ran = home.ran(command.env("PATH", path).output().unwrap());
        refused(&ran, "secret.unreadable", "config.toml:2:", "`get-token` is not there");
        assert!(!home.here().join("../ran").exists(), "{path}");
    }
    let config = r#"
        [secrets.forge]
        command = ["sh", "-c", "echo \"<$FORGE_TOKEN>$PWD\""]
        [secrets.other]
        env = "FORGE_TOKEN"
    "#;
    home.write(home.user_config(), config);
    let folder = home.here().join("../config/tooltape").canonicalize().unwrap();
    assert_eq!(measured(&home), (2 + folder.display().to_string().len()).to_string());
}

#[test]
fn a_call_uses_a_secret_only_where_the_run_may() {
    let forge = "[secrets.forge]\nenv = \"FORGE_TOKEN\"\n";
    for (rights, code) in
        [("\"fs:read:.\"", 6), ("\"secret:use:seal\"", 6), ("\"secret:use:forge\"", 0)]
    {
        let home = home(&format!("[policy]\nrights = [{rights}]\n{forge}"));
        let ran = home.run(&["call", "measure", "--json"]);
        assert_eq!(ran.code, code, "{}{}", ran.stdout, ran.stderr);
    }
    // What it needs is explained without reading any secret.
    let home = home("[secrets.forge]\ncommand = [\"touch\", \"/nowhere/at/all\"]\n");
    let ran = home.run(&["policy", "explain", "measure"]);
    assert!(ran.stdout.contains("secret:use:forge"), "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_model_cannot_supply_a_secret_nor_send_one() {
    let home = home("[secrets.forge]\nenv = \"FORGE_TOKEN\"\n");
    for name in ["token", "forge", "ForgeToken", "secret", "1"] {
        let ran = home.run(&["call", "measure", &format!("{name}=mine"), "--json"]);
        assert_eq!(ran.code, 8, "{}", ran.stderr);
        assert_eq!(ran.error()["code"], "args.invalid", "{}", ran.stderr);
    }
    let ran = home.run(&["call", "echo", &format!("text=it is {TOKEN}"), "--json"]);
    assert_eq!(ran.code, 8, "{}", ran.stderr);
    assert_eq!(ran.error()["code"], "args.secret");
    assert!(!ran.stderr.contains("Canary"), "{}", ran.stderr);
}

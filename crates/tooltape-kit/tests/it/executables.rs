//! Programs as tools: what they are asked, what they answer, and how that goes wrong.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tempfile::TempDir;
use tooltape::{Call, Enforced, Event, MemoryTape, Proposal, Reply, Run, Toolbox, Verdict};
use tooltape_kit::{Executable, ExecutableError, Workspace};

use crate::sandbox::lab::sandbox;
use crate::world::{code, wrapped};

const MANIFEST: &str = r#"
name = "it"
version = "1.0.0"
description = "Does it."

[input]
type = "object"
properties.say = { type = "string", description = "What." }
additionalProperties = false
"#;

/// A folder with programs, and a workspace in it.
struct Shed(TempDir);

impl Shed {
    fn new() -> Shed {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("ws")).unwrap();
        fs::write(folder.path().join("ws/a.txt"), "one two\n").unwrap();
        fs::write(folder.path().join("secret"), "CANARY").unwrap();
        Shed(folder)
    }

    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// A program, with lines of its own in the manifest.
    fn program(&self, script: &str, more: &str) -> PathBuf {
        self.file("it.toml", &format!("{more}\n{MANIFEST}"));
        self.file("it.sh", script)
    }

    fn run(&self, program: &Path) -> Run {
        run(self.0.path(), Executable::load(program).unwrap())
    }

    /// Runs a shell script as a tool.
    fn play(&self, script: &str, more: &str) -> Reply {
        let program = self.program(&format!("#!/bin/sh\n{script}\n"), more);
        call(&self.run(&program), json!({ "say": "hi" }))
    }
}

fn run(folder: &Path, executable: Executable) -> Run {
    let name = executable.manifest().name.clone();
    let mut toolbox = Toolbox::new([executable.tool()]).unwrap();
    sandbox().vouch(&mut toolbox, &name).unwrap();
    Run::new(&toolbox)
        .grant(Workspace::open(folder.join("ws")).unwrap())
        .grant(sandbox())
        .policy(|_: &Call| Verdict::allow_despite_label("these tests"))
}

fn call(run: &Run, args: Value) -> Reply {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let proposal = Proposal::new("c", "it", args.to_string());
    runtime.block_on(run.batch(vec![proposal])).unwrap().remove(0)
}

fn value(reply: &Reply) -> Value {
    reply.value.as_ref().unwrap_or_else(|| panic!("{}", reply.text())).to_value()
}

#[test]
fn a_program_reads_its_arguments_and_answers() {
    let shed = Shed::new();
    for (script, expected) in [
        ("cat", json!({ "say": "hi" })),
        ("echo '\"text\"'", json!("text")),
        ("echo '{\"result\": [1, 2]}'", json!([1, 2])),
        ("echo '{\"result\": 1, \"more\": 2}'", json!({ "result": 1, "more": 2 })),
        ("printf '{\\n \"pretty\":\\n true\\n}\\n'", json!({ "pretty": true })),
        ("echo '{\"progress\":\"a\"}'; echo; echo '{\"result\":null}'", json!(null)),
        ("echo noise >&2; echo 3", json!(3)),
    ] {
        let reply = shed.play(script, "");
        assert_eq!(value(&reply), expected, "{script}");
        assert_eq!(reply.enforced_by, Enforced::Sandbox);
        assert!(!reply.label().is_trusted(), "whoever wrote the program may have written that");
    }
}

#[test]
fn what_it_tells_on_the_way_is_progress() {
    let shed = Shed::new();
    let script =
        "echo '{\"progress\":\"half\"}'; echo '{\"progress\":{\"done\":2}}'; echo '{\"result\":1}'";
    let program = shed.program(&format!("#!/bin/sh\n{script}\n"), "");
    let tape = MemoryTape::default();
    let run = shed.run(&program).tape(tape.clone());
    assert_eq!(value(&call(&run, json!({}))), json!(1));
    let records = tape.records(tape.runs()[0]);
    let told: Vec<_> = records
        .iter()
        .filter_map(|record| match &record.event {
            Event::Progress { text, .. } => Some(text.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(told, ["half", r#"{"done":2}"#]);
}

#[test]
fn a_program_that_does_not_answer_is_a_failure_that_says_so() {
    let shed = Shed::new();
    let out = "bounds.output_bytes = 1000";
    let cases = [
        ("nothing", "true", ""),
        ("not JSON", "echo hello", ""),
        ("half JSON", "echo '{\"result\": '", ""),
        ("two answers", "echo '{\"result\":1}'; echo '{\"result\":2}'", ""),
        ("talk after it", "echo '{\"result\":1}'; echo bye", ""),
        ("only progress", "echo '{\"progress\":\"a\"}'", ""),
        ("not UTF-8", "printf '\\377\\376'", ""),
        ("exit code", "echo why >&2; exit 3", ""),
        ("a result and an exit code", "echo 1; exit 3", ""),
        ("an error", "echo '{\"error\":{\"message\":\"no such word\"}}'", ""),
        (
            "an error and an exit code",
            "echo '{\"error\":{\"message\":\"no\",\"code\":\"x\"}}'; exit 1",
            "",
        ),
        ("nothing done", "echo '{\"error\":{\"message\":\"closed\",\"not_done\":true}}'", ""),
        ("later", "echo '{\"error\":{\"message\":\"busy\",\"retry\":2.5}}'", ""),
        ("a bad error", "echo '{\"error\":\"no\"}'", ""),
        ("killed", "kill -9 $$", ""),
        ("too much", "head -c 100000 /dev/zero | tr '\\0' x", out),
        ("too long", "sleep 60", "bounds.wall_ms = 300"),
        ("no such program", "exec /nowhere/to/be/found", ""),
        ("wrong type", "echo '\"text\"'", "output = { type = \"integer\" }"),
    ];
    let outcomes = cases.map(|(name, script, more)| {
        let reply = shed.play(script, more);
        wrapped(&format!("{name}: [{}] {}", code(&reply), reply.text()))
    });
    expect![[r#"
        nothing: [no_result] failed: the program gave no answer: it wrote nothing
        not JSON: [bad_output] failed: the program gave no answer: line 1 is
            `hello`, expected one JSON document, or lines of `progress` and a
            `result`
        half JSON: [bad_output] failed: the program gave no answer: line 1 is
            `{"result":`, expected one JSON document, or lines of `progress` and a
            `result`
        two answers: [bad_output] failed: the program gave no answer: line 2 comes
            after its answer, expected nothing
        talk after it: [bad_output] failed: the program gave no answer: line 2 comes
            after its answer, expected nothing
        only progress: [no_result] failed: the program gave no answer: it told of
            progress and of no result
        not UTF-8: [bad_output] failed: the program gave no answer: line 1 is `��`,
            expected one JSON document, or lines of `progress` and a `result`
        exit code: [exit_code] failed: the program ended with the exit code 3
        a result and an exit code: [exit_code] failed: the program ended with the
            exit code 3
        an error: [program_failed] failed: no such word
        an error and an exit code: [x] failed: no
        nothing done: [program_failed] not executed: closed
        later: [program_failed] not executed: busy
        a bad error: [bad_output] failed: the program gave no answer: `error`:
            invalid type: string "no", expected an object with a `message`
        killed: [killed] unknown: the program was killed by the signal 9; do not
            repeat it blindly
        too much: [bound.exceeded] unknown: the bound `output_bytes` of 1000 bytes
            was reached
        too long: [bound.exceeded] unknown: the bound `wall` of 300 ms was reached
        no such program: [exit_code] failed: the program ended with the exit code
            127
        wrong type: [output.invalid] failed: executed, but the tool's output does
            not fit what it declared: expected integer, found string `"text"`
    "#]]
    .assert_eq(&outcomes.concat());
}

#[test]
fn what_it_writes_to_stderr_is_for_the_host_alone() {
    let shed = Shed::new();
    let reply = shed.play("echo 'a stack trace' >&2; exit 1", "");
    assert!(!reply.text().contains("stack trace"));
    assert_eq!(reply.details.as_ref().unwrap()["stderr"], "a stack trace\\n");
}

#[test]
fn it_sees_of_the_machine_what_its_manifest_asks_for_and_no_more() {
    let shed = Shed::new();
    let secret = shed.0.path().join("secret").display().to_string();
    let look = format!(
        r#"a=$(cat /workspace/a.txt 2>/dev/null); s=$(cat {secret} 2>/dev/null)
         n=$(echo new 2>/dev/null >/workspace/new.txt && echo yes)
         l=$(ls $(dirname $0) | tr '\n' ' ')
         printf '{{"a":"%s","secret":"%s","new":"%s","beside":"%s"}}' "$a" "$s" "$n" "$l""#
    );
    for (files, a, new) in [("none", "", ""), ("read", "one two", ""), ("write", "one two", "yes")]
    {
        let seen = value(&shed.play(&look, &format!("files = \"{files}\"")));
        let expected = json!({ "a": a, "secret": "", "new": new, "beside": "it.sh " });
        assert_eq!(seen, expected, "{files}");
        assert_eq!(shed.0.path().join("ws/new.txt").exists(), new == "yes");
    }
}

#[test]
fn a_program_that_was_changed_is_refused() {
    let shed = Shed::new();
    let program = shed.program("#!/bin/sh\necho 1\n", "");
    let run = shed.run(&program);
    assert_eq!(value(&call(&run, json!({}))), json!(1));
    shed.file("it.sh", "#!/bin/sh\necho 2\n");
    let reply = call(&run, json!({}));
    assert_eq!(code(&reply), "program_changed", "{}", reply.text());
    fs::remove_file(&program).unwrap();
    assert_eq!(code(&call(&run, json!({}))), "program_changed");
    // As it was, it is the same program.
    shed.file("it.sh", "#!/bin/sh\necho 1\n");
    assert_eq!(value(&call(&run, json!({}))), json!(1));
}

#[test]
fn another_program_or_manifest_is_another_tool() {
    let shed = Shed::new();
    let definition = |script: &str, more: &str| {
        let program = shed.program(script, more);
        let tool = Executable::load(program).unwrap().tool();
        let toolbox = Toolbox::new([tool]).unwrap();
        toolbox.get("it").unwrap().definition()
    };
    let first = definition("#!/bin/sh\necho 1\n", "");
    assert_eq!(definition("#!/bin/sh\necho 1\n", ""), first);
    assert_ne!(definition("#!/bin/sh\necho 2\n", ""), first);
    assert_ne!(definition("#!/bin/sh\necho 1\n", "argv = [\"{program}\", \"-x\"]"), first);
    assert_ne!(definition("#!/bin/sh\necho 1\n", "files = \"read\""), first);
}

/// Why each of these is no tool.
const REFUSED: Expect = expect![[r#"
        `./it.toml` is no manifest: unknown variant `all`, expected one of `none`,
            `read`, `write`
        `./it.toml` is no manifest: duplicate key
        `./it.toml` is no manifest: unknown field `unknown`, expected one of `name`,
            `version`, `description`, `argv`, `files`, `needs`, `effects`, `bounds`,
            `input`, `output`
        `./it.toml` is no manifest: `argv` does not name the program, expected
            `{program}` in it
        `./it.toml` is no manifest: `needs` names `net:get:example.com`, but the
            sandbox has no network
        `./it.toml` is no manifest: `effects.access` is `pure`, expected `read` or
            `write`
        `./it.toml` is no manifest: `effects.access` is `read`, but `files` is
            `write`
        `./it.toml` is no manifest: `effects.repeat` is `never`, expected
            `idempotent` or `once`
        `./it.toml` is no manifest: `bounds.wall_ms` is 0, expected 1 to 3600000
        `./it.toml` is no manifest: `bounds.wall_ms` is 3600001, expected 1 to
            3600000
        `./it.sh` is no manifest: `output` is no schema, expected an object
        `./it.toml` is no manifest: missing field `input`
        `./it.toml` is no manifest: `input` is no schema of an object, expected
            `type = "object"`
        `./it.toml` is no manifest: key with no value, expected `=`
        there is no manifest `./it.toml`
        `./it.sh` names the interpreter `/no/such/interpreter`, which is not there
        `./it.sh` is no program, expected a file of 1 to 67108864 bytes
        `./it.sh` may not be executed: `chmod +x` it, or name an interpreter in
            `argv`
        `./ws` is no program, expected a file of 1 to 67108864 bytes
        `./gone` cannot be read: No such file or directory (os error 2)
    "#]];

#[test]
fn what_is_no_tool_is_refused_before_anything_runs() {
    let shed = Shed::new();
    let script = "#!/bin/sh\ntouch /workspace/ran\n";
    let loaded = |program: &Path| match Executable::load(program) {
        Ok(_) => "ok".to_owned(),
        Err(err) => err.to_string().replace(&shed.0.path().display().to_string(), "."),
    };
    let mut told = Vec::new();
    for more in [
        "files = \"all\"",
        "name = \"twice\"",
        "unknown = 1",
        "argv = [\"python3\", \"-c\", \"1\"]",
        "needs = [\"net:get:example.com\"]",
        "effects.access = \"pure\"",
        "files = \"write\"\neffects.access = \"read\"",
        "effects.repeat = \"never\"",
        "bounds.wall_ms = 0",
        "bounds.wall_ms = 3600001",
        "output = \"text\"",
    ] {
        told.push(loaded(&shed.program(script, more)));
    }
    let bare = MANIFEST.split("[input]").next().unwrap();
    shed.file("it.toml", bare);
    told.push(loaded(&shed.file("it.sh", script)));
    shed.file("it.toml", &format!("{bare}\n[input]\ntype = \"string\"\n"));
    told.push(loaded(&shed.file("it.sh", script)));
    shed.file("it.toml", "this is not toml");
    told.push(loaded(&shed.file("it.sh", script)));
    fs::remove_file(shed.0.path().join("it.toml")).unwrap();
    told.push(loaded(&shed.file("it.sh", script)));
    shed.file("it.toml", MANIFEST);
    told.push(loaded(&shed.file("it.sh", "#!/no/such/interpreter\n")));
    told.push(loaded(&shed.file("it.sh", "")));
    fs::set_permissions(shed.file("it.sh", script), Permissions::from_mode(0o644)).unwrap();
    told.push(loaded(&shed.0.path().join("it.sh")));
    told.push(loaded(&shed.0.path().join("ws")));
    told.push(loaded(&shed.0.path().join("gone")));
    let told: String = told.iter().map(|told| wrapped(told)).collect();
    REFUSED.assert_eq(&told);
    assert!(!shed.0.path().join("ws/ran").exists());
}

#[tokio::test]
async fn a_program_may_say_itself_what_it_is() {
    let shed = Shed::new();
    let manifest = json!({
        "name": "it", "description": "Counts.", "files": "read",
        "input": { "type": "object", "properties": {}, "additionalProperties": false },
    });
    let describes = |what: &str| {
        let script =
            format!("#!/bin/sh\nif [ \"$1\" = --describe ]; then\n{what}\nexit\nfi\necho 1\n");
        shed.file("itself.sh", &script)
    };
    let program = describes(&format!("cat <<'END'\n{manifest}\nEND\n"));
    let executable = Executable::describe(&program, &sandbox()).await.unwrap();
    assert_eq!(executable.manifest().description, "Counts.");
    // What it said, written down beside it, is the same tool.
    fs::write(shed.0.path().join("itself.toml"), executable.manifest().to_toml().unwrap()).unwrap();
    assert_eq!(Executable::load(&program).unwrap().hash(), executable.hash());
    let secret = shed.0.path().join("secret").display().to_string();
    for what in [
        "echo hello".to_owned(),
        "exit 3".to_owned(),
        "true".to_owned(),
        "head -c 10000000 /dev/zero".to_owned(),
        format!("cat {secret}"),
    ] {
        let err = Executable::describe(describes(&what), &sandbox()).await.err().unwrap();
        assert!(matches!(err, ExecutableError::Undescribed { .. }), "{what}: {err}");
        assert!(!err.to_string().contains("CANARY"));
    }
}

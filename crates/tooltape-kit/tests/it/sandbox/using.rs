//! What a process can do in its box, which is all that ordinary work needs.

use serde_json::json;
use tooltape_kit::Sandbox;

use super::lab::{Lab, helper, value};
use super::scene::survivors;
use crate::world::code;

#[test]
fn a_command_runs_in_the_workspace_and_says_how_it_ended() {
    let lab = Lab::new();
    let ran = lab.shell("echo out; echo err >&2; echo kept > made.txt; exit 3");
    assert_eq!(
        ran,
        json!({
            "exit_code": 3, "signal": null, "exceeded": null, "stdout": "out\n",
            "stderr": "err\n", "stdout_truncated": false, "stderr_truncated": false,
            "cwd": ".", "set_aside": [], "preview": null, "warning": null
        })
    );
    assert_eq!(std::fs::read_to_string(lab.at("made.txt")).unwrap(), "kept\n");
}

#[test]
fn the_folder_that_a_shell_ends_in_is_where_the_next_one_can_start() {
    let lab = Lab::new();
    assert_eq!(lab.shell("mkdir -p a/b && cd a/b")["cwd"], "a/b");
    let reply = lab.call("shell", &json!({"command": "pwd; cd /usr", "cwd": "a/b"}));
    let ran = value(&reply);
    assert_eq!(
        (ran["stdout"].as_str(), ran["cwd"].as_str()),
        (Some("/workspace/a/b\n"), Some("a/b"))
    );
    assert_eq!(reply.enforced_by.to_string(), "sandbox");
}

#[test]
fn what_a_process_writes_is_untrusted_and_seen_while_it_runs() {
    let lab = Lab::new();
    let run = lab.run();
    assert!(run.label().is_trusted());
    lab.shell("echo one; echo two >&2");
    assert_eq!(run.label().to_string(), "untrusted (shell), public");
    let said = lab.progress();
    assert!(said.contains(&"stdout: one".to_owned()), "{said:?}");
    assert!(said.contains(&"stderr: two".to_owned()), "{said:?}");
}

#[test]
fn a_program_gets_its_arguments_as_they_are() {
    let lab = Lab::new();
    let ran = lab.exec(&["printf", "%s|", "$HOME", "`id`", "a b", "*", "-n", ""]);
    assert_eq!(ran["stdout"], "$HOME|`id`|a b|*|-n||");
    let reply = lab.call("exec", &json!({"argv": ["no-such-program"]}));
    assert_eq!(code(&reply), "program_not_started");
    assert!(reply.text().starts_with("not executed: `no-such-program` could not be"));
    let reply = lab.call("shell", &json!({"command": "pwd", "cwd": "gone"}));
    assert_eq!(code(&reply), "program_not_started");
}

#[test]
fn everyday_tools_work_in_the_box() {
    let lab = Lab::new();
    std::fs::write(lab.at("a.txt"), "one\ntwo\n").unwrap();
    for (command, expected) in [
        ("grep -c o a.txt | tr -d '\\n'; ls", "2a.txt\n"),
        ("mkdir t && cd t && cp ../a.txt b && mv b c && cat c", "one\ntwo\n"),
        ("perl -e 'print 6*7'", "42"),
        ("awk '{ print $1 }' a.txt | sort -r | head -1", "two\n"),
        ("printf '#!/bin/sh\\necho made' > run; chmod +x run; ./run", "made\n"),
        ("mktemp -d >/dev/null && echo $HOME $(id -un) $(hostname)", "/tmp user tooltape\n"),
        ("(echo a; sleep 0.01; echo b) | while read l; do echo $l; done", "a\nb\n"),
        ("cat < /dev/null; head -c 3 /dev/zero | wc -c | tr -d ' '", "3\n"),
        ("mkfifo p; (echo x > p &) ; cat p; chmod 755 p; touch u; chmod 600 u", "x\n"),
        ("sleep 5 & kill $!; wait $!; echo $?", "143\n"),
        ("perl -MIO::Socket::INET -e 'my $s = IO::Socket::INET->new(Listen => 1); print 1'", "1"),
    ] {
        let ran = lab.shell(command);
        assert_eq!(ran["stdout"], expected, "{command}: {ran}");
        assert_eq!(ran["exit_code"], 0, "{command}: {ran}");
    }
}

#[test]
fn a_signal_is_told_from_an_exit_code() {
    let lab = Lab::new();
    let ran = lab.exec(&["sh", "-c", "kill -SEGV $$"]);
    assert_eq!((&ran["signal"], &ran["exit_code"]), (&json!(11), &json!(null)));
    let ran = lab.exec(&["sh", "-c", "exit 139"]);
    assert_eq!((&ran["signal"], &ran["exit_code"]), (&json!(null), &json!(139)));
}

#[test]
fn a_call_sees_as_much_of_the_workspace_as_its_run_may_use() {
    let read = "process:shell:sandbox fs:read:.";
    let nothing = "process:shell:sandbox fs:read:src";
    let probe = "cat a.txt; echo x > made; ls /workspace >/dev/null && echo seen";
    for (rights, stdout, made) in [(read, "one\nseen\n", false), (nothing, "", false)] {
        let lab = Lab::holding(rights);
        std::fs::write(lab.at("a.txt"), "one\n").unwrap();
        let ran = lab.shell(probe);
        assert_eq!((ran["stdout"].as_str(), lab.at("made").exists()), (Some(stdout), made));
    }
    let lab = Lab::holding("fs:read:. fs:write:.");
    let reply = lab.call("shell", &json!({"command": "echo x > made"}));
    assert_eq!(reply.executed, tooltape::Executed::NotExecuted);
    assert!(!lab.at("made").exists());
}

#[test]
fn without_a_sandbox_every_result_says_so() {
    let lab = Lab::with(Sandbox::unsafe_without(helper()));
    let reply = lab.call("shell", &json!({"command": "echo $HOME; pwd; exit 4"}));
    let ran = value(&reply);
    assert_eq!(reply.enforced_by.to_string(), "host");
    assert!(ran["warning"].as_str().unwrap().contains("without a sandbox"), "{ran}");
    assert_eq!(ran["exit_code"], 4);
    assert!(ran["stdout"].as_str().unwrap().starts_with("/tmp\n"), "{ran}");
    lab.shell("setsid perl -e 'sleep 1000' unsafe-marker-x >/dev/null 2>&1 </dev/null &");
    assert_eq!(survivors("unsafe-marker-x"), [0; 0]);
}

#[test]
fn what_has_a_protected_name_is_renamed_and_told() {
    let lab = Lab::new();
    let ran = lab.shell("mkdir -p new/.git && echo x > new/.git/config");
    let now = ran["set_aside"][0]["now"].as_str().unwrap();
    assert!(now.starts_with("new/set-aside."), "{ran}");
    assert_eq!(ran["set_aside"], json!([{"path": "new/.git", "now": now}]));
    assert_eq!(std::fs::read_to_string(lab.at(now).join("config")).unwrap(), "x\n");
    std::fs::create_dir(lab.at(".vscode")).unwrap();
    let ran = lab.shell("echo x > .vscode/tasks.json");
    assert!(ran["stderr"].as_str().unwrap().contains("Read-only file system"), "{ran}");
    assert_eq!(ran["set_aside"], json!([]));
}

#[test]
fn the_tools_declare_what_they_do() {
    for tool in tooltape_kit::process_tools() {
        let spec = tool.spec();
        let effects = &spec.effects;
        assert_eq!(effects.access, tooltape::Access::Write, "{}", spec.name);
        assert!(effects.process && effects.filesystem && !effects.spend, "{}", spec.name);
        assert_eq!(spec.capabilities, ["process:shell:sandbox"], "{}", spec.name);
        assert_eq!(spec.input["additionalProperties"], false, "{}", spec.name);
        let fields = spec.output.as_ref().unwrap()["properties"].as_object().unwrap();
        assert!(fields.values().all(|field| field.get("description").is_some()), "{fields:?}");
    }
}

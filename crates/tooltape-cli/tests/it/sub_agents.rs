//! Sub-agents that a configuration names: offered, asked about, paused and resumed.

use serde_json::{Value, json};

use crate::home::Home;

const CONFIG: &str = r#"
[agent]
script = "main.jsonl"
ask = "Mend both files."

[sub_agents.mender]
description = "Mends one file."
model = "script:mender.jsonl"
instructions = "Change nothing else."
tools = ["read_file", "edit_file"]
turns = 4

[policy]
default = "ask"

[[policy.rules]]
tool = "mender"
verdict = "allow"
"#;
const MAIN: &str = r#"
{"calls": [{"tool": "read_file", "args": {"path": "a.txt"}}, {"tool": "mender", "args": {"task": "Mend a.txt."}}]}
{"say": "Both are mended."}
"#;
const MENDER: &str = r#"
{"calls": [{"tool": "read_file", "args": {"path": "a.txt"}}, {"tool": "hash", "args": {"text": ""}}]}
{"calls": [{"tool": "edit_file", "args": {"path": "a.txt", "edits": [{"old": "one", "new": "two"}]}}]}
{"say": "It says two now."}
"#;

fn project(config: &str) -> Home {
    let home = Home::new();
    let files = [("tooltape.toml", config), ("main.jsonl", MAIN), ("mender.jsonl", MENDER)];
    for (name, text) in files.into_iter().chain([("a.txt", "one\n")]) {
        home.write(name, text);
    }
    home
}

fn questions(home: &Home) -> Vec<Value> {
    home.run(&["approve", "ls", "--json"]).json().as_array().unwrap().clone()
}

#[test]
fn a_question_of_a_sub_agent_waits_on_the_tape_and_its_answer_takes_the_caller_on() {
    let home = project(CONFIG);
    let paused = home.run(&["run", ".", "--json"]);
    assert_eq!((paused.code, &paused.json()["status"]), (7, &json!("paused")), "{}", paused.stderr);
    let asked = questions(&home);
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0]["tool"], "edit_file@0.1.0", "the sub-agent asks");
    assert_eq!(
        (&asked[0]["args"]["path"], home.read("a.txt").as_str()),
        (&json!("a.txt"), "one\n")
    );
    // Still nobody answers.
    assert_eq!(home.run(&["resume", "--json"]).code, 7);
    assert_eq!(questions(&home).len(), 1);
    let yes = home.run(&["approve", "yes", asked[0]["id"].as_str().unwrap()]);
    assert_eq!((yes.code, home.read("a.txt").as_str()), (0, "one\n"));
    let ended = home.run(&["resume", "--json"]);
    assert_eq!((ended.code, &ended.json()["answer"]), (0, &json!("Both are mended.")));
    assert_eq!(home.read("a.txt"), "two\n");
    let runs = home.run(&["runs", "ls", "--json", "--all"]);
    assert!(!runs.stdout.contains("paused"), "{}", runs.stdout);
    let shown = home.run(&["show", "last"]);
    for words in ["It says two now.", "`hash`", "edit_file"] {
        assert!(shown.stdout.contains(words), "{words}: {}", shown.stdout);
    }
    assert_eq!(home.run(&["verify", "last"]).code, 0);
    assert_eq!(home.run(&["replay", "last"]).code, 0);
}

#[test]
fn a_sub_agent_is_a_tool_like_any_other_and_a_bad_one_is_named_at_its_place() {
    let home = project(CONFIG);
    let listed = home.run(&["tools", "list", "--json"]);
    assert!(listed.stdout.contains("\"mender\""), "{}", listed.stdout);
    let called = home.run(&["call", "mender", "task=Mend.", "--yes", "--json"]);
    assert_eq!((called.code, home.read("a.txt").as_str()), (0, "two\n"), "{}", called.stderr);
    for (wrong, said) in [
        (CONFIG.replace("model = \"script:mender.jsonl\"", ""), "it has no model"),
        (
            CONFIG.replace("script:mender.jsonl", "http://127.0.0.1:9#m"),
            "a project cannot say which",
        ),
        (CONFIG.replace("sub_agents.mender", "sub_agents.read_file"), "read_file"),
        (CONFIG.replace("turns = 4", "trns = 4"), "trns"),
    ] {
        let refused = project(&wrong).run(&["run", "."]);
        assert_eq!(refused.code, 2, "{said}: {}", refused.stderr);
        assert!(refused.stderr.contains(said), "{said}: {}", refused.stderr);
    }
    let gone = project(&CONFIG.replace("mender.jsonl", "nothing.jsonl"));
    assert_eq!(gone.run(&["tools", "list"]).code, 0);
    let gone = gone.run(&["call", "mender", "task=Mend.", "--yes", "--json"]);
    assert!(gone.stdout.contains("nothing.jsonl` cannot be read"), "{}", gone.stdout);
}

#[test]
fn no_project_has_a_sub_agent_send_keys_to_a_server_of_its_choice() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let server = format!("http://{}/v1#m", listener.local_addr().unwrap());
    let config = format!(
        "agent.model = \"{server}\"\n[[policy.rules]]\ntool = \"sub_agent\"\nverdict = \"allow\"\n"
    );
    let home = project(&config).with("TOOLTAPE_MODEL_KEY", "a-long-secret-key");
    for args in [&["call", "sub_agent", "task=x", "--yes"][..], &["tools", "list"], &["run", "."]] {
        let refused = home.run(args);
        assert_eq!(refused.code, 2, "{args:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("a project cannot say which"), "{}", refused.stderr);
    }
    assert!(listener.accept().is_err(), "nobody was asked");
}

#[test]
fn a_model_behind_an_api_can_give_tasks_to_another_like_it() {
    let home = project("[agent]\nmodel = \"openai:gpt-x\"\n");
    let listed = home.run(&["tools", "show", "sub_agent", "--json"]);
    assert_eq!(listed.code, 0, "nobody needs a key for that: {}", listed.stderr);
    assert!(listed.json()["input_schema"]["properties"]["task"].is_object(), "{}", listed.stdout);
}

//! Models behind an API: asked, refused, unreachable, resumed, talked with, and played again.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use serde_json::{Value, json};

use crate::home::Home;
use crate::terminal::Terminal;

/// A server that answers with what it was given, one after the other.
struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

/// What a server does with a request.
enum Act {
    /// Answers.
    Answer(String),
    /// Answers once somebody says so.
    Later(Receiver<()>, String),
    /// Says that it was asked, waits until whoever asked went away, and says so.
    Hang(Sender<()>),
}

impl From<String> for Act {
    fn from(answer: String) -> Act {
        Act::Answer(answer)
    }
}

/// A request that a server was sent.
#[derive(Clone)]
struct Asked {
    head: String,
    body: Value,
}

impl Server {
    fn new<A: Into<Act>>(acts: impl IntoIterator<Item = A>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let heard = Arc::clone(&asked);
        let acts: Vec<Act> = acts.into_iter().map(Into::into).collect();
        thread::spawn(move || {
            for act in acts {
                let (mut stream, _) = listener.accept().unwrap();
                heard.lock().unwrap().push(read(&stream));
                match act {
                    Act::Answer(answer) => stream.write_all(answer.as_bytes()).unwrap(),
                    Act::Later(said, answer) => {
                        said.recv().unwrap();
                        stream.write_all(answer.as_bytes()).unwrap();
                    }
                    Act::Hang(gone) => {
                        gone.send(()).unwrap();
                        assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0, "nothing more is sent");
                        gone.send(()).unwrap();
                    }
                }
            }
        });
        Server { address, asked }
    }

    fn model(&self) -> String {
        format!("{}#tiny", self.address)
    }

    fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

fn read(stream: &TcpStream) -> Asked {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(reader.read_line(&mut head).unwrap() > 0, "a whole request: {head}");
    }
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let mut body = vec![0; length.unwrap().parse().unwrap()];
    reader.read_exact(&mut body).unwrap();
    Asked { head, body: serde_json::from_slice(&body).unwrap() }
}

fn answer(status: &str, kind: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: \
         close\r\n\r\n{body}",
        body.len()
    )
}

/// A turn as a stream of Chat Completions.
fn turn(delta: Value, finish: &str) -> String {
    let usage = json!({ "prompt_tokens": 20, "completion_tokens": 5 });
    let events = [
        json!({ "choices": [{ "index": 0, "delta": delta }] }),
        json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": finish }] }),
        json!({ "choices": [], "usage": usage }),
    ];
    let events: String = events.iter().map(|event| format!("data: {event}\n\n")).collect();
    answer("200 OK", "text/event-stream", &format!("{events}data: [DONE]\n\n"))
}

fn says(text: &str) -> String {
    turn(json!({ "role": "assistant", "content": text }), "stop")
}

fn calls(name: &str, arguments: &str) -> String {
    let function = json!({ "name": name, "arguments": arguments });
    let call = json!({ "index": 0, "id": "call_x", "type": "function", "function": function });
    turn(json!({ "role": "assistant", "tool_calls": [call] }), "tool_calls")
}

const KEY: &str = "canary-key-0123456789";

#[test]
fn a_model_at_an_address_is_asked_and_its_key_is_nowhere_else() {
    let server = Server::new([calls("echo", r#"{"text":"hi"}"#), says("It said hi.")]);
    let home = Home::new().with("TOOLTAPE_MODEL_KEY", KEY);
    let ran = home.run(&["run", "--model", &server.model(), "--ask", "Echo hi.", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let summary = ran.json();
    assert_eq!((&summary["answer"], &summary["calls"]), (&json!("It said hi."), &json!(1)));
    assert_eq!(summary["usage"], json!({ "input_tokens": 40, "output_tokens": 10 }));
    let asked = server.asked();
    assert!(asked.iter().all(|it| it.head.contains(&format!("authorization: Bearer {KEY}"))));
    assert!(asked[0].head.starts_with("POST /v1/chat/completions "));
    assert_eq!(asked[0].body["model"], "tiny");
    assert_eq!(asked[1].body["messages"].as_array().unwrap().len(), 3);
    let shown = home.run(&["show", "last", "--full"]);
    let said = [ran.stdout, ran.stderr, shown.stdout, shown.stderr].concat();
    assert!(!said.contains(KEY) && shown.code == 0);
    assert_eq!(home.run(&["replay", "last", "-q"]).code, 0);
}

#[test]
fn a_wrong_key_pauses_the_run_and_the_right_one_resumes_it() {
    let refused = json!({ "error": { "message": "Incorrect API key provided" } }).to_string();
    let answers = [
        answer("401 Unauthorized", "application/json", &refused),
        calls("echo", r#"{"text":"hi"}"#),
        says("done"),
    ];
    let server = Server::new(answers);
    let home = Home::new();
    let ran = home.run(&["run", "--model", &server.model(), "--ask", "Go.", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].clone()), (3, json!("model.unauthorised")));
    // Which model it was is on the tape.
    let ran = home.run(&["resume", "--json"]);
    assert_eq!((ran.code, ran.json()["answer"].clone()), (0, json!("done")), "{}", ran.stderr);
}

#[test]
fn what_cannot_be_reached_is_said_so_and_can_be_resumed() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let home = Home::new();
    let model = format!("http://{address}/v1#tiny");
    let ran = home.run(&["run", "--model", &model, "--ask", "Go.", "--json"]);
    assert_eq!((ran.code, ran.error()["code"].clone()), (4, json!("model.unreachable")));
    assert_eq!(ran.json()["status"], "paused");
    let server = Server::new([says("late")]);
    let ran = home.run(&["resume", "--model", &server.model(), "-q"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "late\n"), "{}", ran.stderr);
}

fn run(model: &str) -> [&str; 5] {
    ["run", "--model", model, "--ask", "Go."]
}

#[test]
fn bad_names_keys_and_answers_are_refused_with_the_reason() {
    let home = Home::new();
    let code = |home: &Home, args: &[&str]| {
        let ran = home.run(&[args, &["--json"]].concat());
        (ran.code, ran.error()["code"].as_str().unwrap().to_owned())
    };
    assert_eq!(code(&home, &run("openai:gpt-5")), (3, "model.unauthorised".into()));
    assert_eq!(code(&home, &run("gpt-5")), (2, "config.invalid".into()));
    assert_eq!(code(&home, &run("openai:")), (2, "config.invalid".into()));
    assert_eq!(code(&home, &run("openai:\u{1b}]0;x")), (2, "config.invalid".into()));
    let ran = home.run(&run("http://user:s3cr3tpass@127.0.0.1/v1"));
    assert!(ran.code == 2 && !ran.stderr.contains("s3cr3tpass"), "{}", ran.stderr);
    assert_eq!(code(&home, &run("http://")), (2, "model.unusable".into()));
    assert_eq!(code(&home, &["run", "--model", "http://127.0.0.1:1/v1"]).1, "config.incomplete");
    home.write("tooltape.toml", "[agent]\nmodel = \"http://127.0.0.1:1/v1\"\nask = \"Go.\"\n");
    assert_eq!(code(&home, &["run"]), (2, "config.invalid".into()));

    let home = Home::new();
    let html = answer("200 OK", "text/html", "<html>Welcome to the hotel</html>");
    let empty = answer("200 OK", "application/json", r#"{"choices":[]}"#);
    let schema = json!({ "error": { "message": "Invalid schema for function 'echo'" } });
    let schema = answer("400 Bad Request", "application/json", &schema.to_string());
    let unknown = json!({ "error": { "message": "model `tiny` not found" } });
    let unknown = answer("404 Not Found", "application/json", &unknown.to_string());
    for (said, expected) in [
        (html, "model.garbled"),
        (empty, "model.garbled"),
        (schema, "model.rejected"),
        (unknown, "model.rejected"),
    ] {
        let server = Server::new([said]);
        let model = server.model();
        assert_eq!(code(&home, &run(&model)), (5, expected.into()));
    }
}

#[test]
fn every_line_of_a_chat_is_asked_in_one_conversation() {
    let server = Server::new([says("Hello."), calls("echo", "{}"), says("Bye.")]);
    let home = Home::new();
    let ran = home.feed(&["chat", "--model", &server.model()], b"Hi!\n\nAnd now?\n");
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello.\nBye.\n"), "{}", ran.stderr);
    let last = server.asked().last().unwrap().body.clone();
    let roles = last["messages"].as_array().unwrap().iter();
    let roles: Vec<_> = roles.map(|message| message["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "assistant", "user", "assistant", "tool"]);
    assert_eq!(home.run(&["replay", "last", "-q"]).code, 0);
    assert_eq!(home.run(&["verify", "last", "-q"]).code, 0);
}

#[test]
fn a_line_that_cannot_be_asked_is_said_so_and_the_chat_goes_on() {
    let server = Server::new([says("Hello.")]);
    let home = Home::new();
    let lines = [&b"\xff\n"[..], &vec![b'x'; 1 << 21], b"\nHi!\n"].concat();
    let ran = home.feed(&["chat", "--model", &server.model()], &lines);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Hello.\n"), "{}", ran.stderr);
    assert!(ran.stderr.contains("it is not UTF-8") && ran.stderr.contains("bytes: the line"));
}

#[test]
fn a_script_that_was_named_as_the_model_is_found_again_from_any_folder() {
    let home = Home::new();
    let edits = json!([{ "old": "one", "new": "two" }]);
    let edit = json!({ "tool": "edit_file", "args": { "path": "a.txt", "edits": edits } });
    let script = format!("{}\n{{\"say\":\"done\"}}\n", json!({ "calls": [edit] }));
    home.write("a.txt", "one\n").write("s/s.jsonl", &script).write("elsewhere/x", "");
    let ran = home.run(&["run", "--model", "script:s/s.jsonl", "-q"]);
    assert_eq!(ran.code, 7, "{}", ran.stderr);
    let mut resume = home.command(&["resume", "--yes", "-q"]);
    let ran = home.ran(resume.current_dir(home.here().join("elsewhere")).output().unwrap());
    assert_eq!((ran.code, home.read("a.txt").as_str()), (0, "two\n"), "{}", ran.stderr);
}

#[test]
fn a_live_session_becomes_a_script_that_plays_it_again() {
    let server = Server::new([calls("echo", r#"{"text": "hi"}"#), says("It said hi.")]);
    let home = Home::new();
    home.run(&["run", "--model", &server.model(), "--ask", "Echo hi.", "-q"]);
    let exported = home.run(&["export", "last", "-o", "it.script.jsonl"]);
    assert_eq!(exported.code, 0, "{}", exported.stderr);
    let script = home.read("it.script.jsonl");
    let first = script.lines().nth(1).unwrap();
    assert!(first.contains(r#""args":{"text": "hi"}"#), "{first}");
    let ran = home.run(&["run", "it.script.jsonl", "--json"]);
    assert_eq!((ran.code, ran.json()["answer"].clone()), (0, json!("It said hi.")));
    assert_eq!(home.run(&["export", "last", "--format", "script"]).stdout, script);
}

#[test]
fn what_is_typed_while_a_model_is_at_work_is_read_before_its_next_turn() {
    let (go_on, said) = channel();
    let acts =
        [Act::Later(said, calls("echo", r#"{"text":"hi"}"#)), Act::Answer(says("As you wish."))];
    let server = Server::new(acts);
    let home = Home::new();
    let model = server.model();
    let mut terminal = Terminal::start(home.command(&["chat", "--model", &model, "--no-color"]));
    terminal.shows("> ");
    terminal.types("Echo hi.\n");
    terminal.shows("turn 1: waiting for");
    terminal.types("Softly.\n");
    terminal.shows("it reads that before its next turn");
    go_on.send(()).unwrap();
    terminal.shows("As you wish.");
    terminal.types("\u{4}");
    let showed = terminal.end();
    assert_eq!(showed.code, 0, "{}", showed.text);
    let last = server.asked().last().unwrap().body["messages"].clone();
    let roles: Vec<_> = last.as_array().unwrap().iter().map(|it| it["role"].clone()).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "user"]);
    assert!(last[3].to_string().contains("Softly."));
}

#[test]
fn ctrl_c_interrupts_the_model_closes_its_connection_and_the_chat_goes_on() {
    let (gone, is_gone) = channel();
    let server = Server::new([Act::Hang(gone), Act::Answer(says("Back."))]);
    let home = Home::new();
    let model = server.model();
    let mut terminal = Terminal::start(home.command(&["chat", "--model", &model, "--no-color"]));
    terminal.shows("> ");
    terminal.types("Go.\n");
    terminal.shows("turn 1: waiting for");
    is_gone.recv().unwrap();
    terminal.interrupts();
    is_gone.recv().unwrap();
    terminal.shows("the turn ended: interrupted");
    // Its prompt, lest it be taken for the one after the answer.
    terminal.shows_again("> ");
    terminal.types("Again.\n");
    terminal.shows("Back.");
    terminal.shows_again("> ");
    terminal.interrupts();
    let showed = terminal.end();
    assert_eq!(showed.code, 0, "{}", showed.text);
}

#[test]
fn ctrl_c_cancels_a_run_whose_model_is_at_work() {
    let (gone, is_gone) = channel();
    let server = Server::new([Act::Hang(gone)]);
    let home = Home::new();
    let args = ["run", "--model", &server.model(), "--ask", "Go.", "--no-color"];
    let mut terminal = Terminal::start(home.command(&args));
    terminal.shows("turn 1: waiting for");
    is_gone.recv().unwrap();
    terminal.interrupts();
    is_gone.recv().unwrap();
    assert_eq!(terminal.end().code, 130);
}

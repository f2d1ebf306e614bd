//! Everything that leaves a run, searched for secrets that hostile tools and models put there.

mod forms;
mod leaks;

use std::fs;
use std::path::Path;
use std::sync::{Arc, Mutex};

use aho_corasick::AhoCorasick;
use forms::{BYTES, TEXTS, Written, of_bytes, of_text};
use leaks::{Planted, READ, WRITE, keep, leak};
use serde_json::json;
use tooltape::{
    Agent, Answer, Artifacts, Backlog, Empty, Message, Model, ModelError, Proposal, Redactor,
    Request, Run, SqliteTape, State, Store, Tape as _, TapeWriter, ToolError, Toolbox, Turn,
    Verdict, tool, tools,
};

/// Where the model, the user and the host say it.
const OTHERS: [&str; 10] = [
    "arguments",
    "escaped arguments",
    "unparsed arguments",
    "unknown tool",
    "call id",
    "text",
    "answer",
    "question",
    "denial",
    "note",
];

/// Asks somebody first.
#[tool(Write)]
async fn asking(_: Empty) -> Result<String, ToolError> {
    Ok("done".to_owned())
}

/// A model that calls what it is told to, and keeps all that it reads.
#[derive(Clone)]
struct Puppet {
    turns: Arc<Mutex<Vec<Turn>>>,
    heard: Arc<Mutex<String>>,
}

impl Model for Puppet {
    fn turn<'a>(
        &'a self,
        request: &'a Request<'a>,
    ) -> tooltape::BoxFuture<'a, Result<Turn, ModelError>> {
        let Request { messages, offer, .. } = *request;
        let mut heard = self.heard.lock().unwrap();
        heard.push_str(&format!("{messages:?}"));
        for tool in offer.tools() {
            heard.push_str(&format!("{:?}", tool.spec().input));
        }
        for message in messages {
            if let Message::Replies(replies) = message {
                replies.iter().for_each(|reply| heard.push_str(&reply.text()));
            }
        }
        let turn = self.turns.lock().unwrap().remove(0);
        Box::pin(async move { Ok(turn) })
    }
}

fn escaped(text: &str) -> String {
    text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect()
}

/// What the model does: every call that says it, one turn that says it, and an answer that does.
fn turns(said: &str, only: Option<&str>) -> Vec<Turn> {
    let wanted = |place: &&&str| only.is_none_or(|only| only == **place);
    let sink = |tool: &'static str| {
        move |sink: &&str| Proposal::new(*sink, tool, json!({ "sink": sink }).to_string())
    };
    let mut calls: Vec<Proposal> = READ.iter().filter(wanted).map(sink("leak")).collect();
    calls.extend(WRITE.iter().filter(wanted).map(sink("keep")));
    let is_wanted = |place: &str| only.is_none_or(|only| only == place);
    let args = json!({ "sink": format!("say {said}") }).to_string();
    let mut others = Vec::new();
    if is_wanted("arguments") {
        others.push(Proposal::new("a1", "leak", args));
    }
    if is_wanted("escaped arguments") {
        let args = format!(r#"{{"sink":"{}"}}"#, escaped(said));
        others.push(Proposal::new("a2", "leak", args));
    }
    if is_wanted("unparsed arguments") {
        others.push(Proposal::unparsed("a3", "leak", format!("{{{said}"), format!("at {said}")));
    }
    if is_wanted("unknown tool") {
        others.push(Proposal::new("a4", format!("t_{said}"), "{}"));
    }
    if is_wanted("call id") {
        others.push(Proposal::new(format!("id {said}"), "leak", r#"{"sink":"none"}"#));
    }
    if is_wanted("denial") {
        others.push(Proposal::new("a6", "asking", "{}"));
    }
    let last = Proposal::new("z", "leak", r#"{"sink":"none"}"#);
    let mut first = Turn::calls(calls.into_iter().chain(others).chain([last]));
    if is_wanted("text") {
        first.text = Some(format!("I say {said}").into());
    }
    let answer = if is_wanted("answer") { format!("it is {said}") } else { "done".to_owned() };
    vec![first, Turn::answer(answer)]
}

/// Everything that left.
struct Left(Vec<(String, Vec<u8>)>);

impl Left {
    fn add(&mut self, place: &str, bytes: impl Into<Vec<u8>>) {
        self.0.push((place.to_owned(), bytes.into()));
    }

    fn add_files(&mut self, folder: &Path) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => self.add_files(&path),
                false => {
                    self.add("a file's name", path.display().to_string());
                    self.add(&path.display().to_string(), fs::read(&path).unwrap());
                }
            }
        }
    }

    /// Where one of these is found, as it is or with the escapes of what it was written into.
    fn finds<'n>(&self, needles: impl IntoIterator<Item = &'n str>) -> Option<(String, String)> {
        let json = |text: &str| {
            let json = serde_json::to_string(text).unwrap();
            json[1..json.len() - 1].to_owned()
        };
        let needles = needles.into_iter().flat_map(|needle| {
            let once = json(needle);
            [needle.to_owned(), json(&once), once, needle.escape_debug().to_string()]
        });
        let needles: Vec<String> = needles.collect();
        let all = AhoCorasick::new(&needles).unwrap();
        self.0.iter().find_map(|(place, bytes)| {
            let found = all.find(bytes)?;
            Some((place.clone(), needles[found.pattern().as_usize()].clone()))
        })
    }
}

/// A run in which everybody says it everywhere, or in one place, and all that left it.
async fn world(said: &str, only: Option<&str>, redactor: Redactor) -> Left {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let mut left = Left(Vec::new());
    let tape = SqliteTape::open(at("runs.db")).unwrap();
    let denial = said.to_owned();
    let is_noted = only.is_none_or(|only| only == "note");
    let run = Run::new(&Toolbox::new(tools![leak, keep, asking]).unwrap())
        .policy(|call: &tooltape::Call| match call.spec().name.as_ref() {
            "asking" => Verdict::ask("test"),
            _ => Verdict::allow("test"),
        })
        .approver(move |_| {
            let denial = denial.clone();
            Box::pin(async move { Answer::Deny(format!("not with {denial}")) })
        })
        .grant(Planted(said.to_owned()))
        .grant(State::new(String::new()))
        .grant(Store::sqlite(at("store.db")).unwrap())
        .grant(Artifacts::in_dir(at("artifacts")).unwrap())
        .redact(redactor)
        .tape(tape.clone());
    let run = if is_noted { run.note(json!({ "at": said })).thread(said) } else { run };
    let mut watching = run.subscribe(Backlog::default());
    let turns = Arc::new(Mutex::new(turns(said, only)));
    let model = Puppet { turns, heard: Arc::default() };
    let agent = Agent::new(model.clone(), run);
    let asked = only.is_none_or(|only| only == "question");
    let question = if asked { format!("use {said}") } else { "go".to_owned() };
    let answered = agent.ask(question).await;
    left.add("the answer", format!("{answered:?}"));
    left.add("the model's messages", model.heard.lock().unwrap().clone());
    let run = agent.run().id();
    drop(agent);
    while let Some(seen) = watching.next().await {
        left.add("a subscriber's record", format!("{seen:?}"));
    }
    let records = tape.read(run, 0, 10_000).await.unwrap();
    left.add("records, debugged", format!("{records:?}"));
    left.add("records, serialised", serde_json::to_string(&records).unwrap());
    let mut writer = TapeWriter::new(Vec::new()).unwrap();
    for line in tape.lines(run, 0, 10_000).unwrap() {
        writer.line(&line).unwrap();
    }
    left.add("the exported tape", writer.end(|_| {}).unwrap());
    // The log beside the tape, too.
    left.add_files(folder.path());
    drop(tape);
    left.add_files(folder.path());
    left
}

/// Nothing of a secret leaves, in whatever way it is said.
async fn check(secret: &[u8], ways: Vec<(&'static str, Written)>) -> usize {
    let redactor = Redactor::new([secret]).unwrap();
    for (way, Written { said, .. }) in &ways {
        let left = world(said, None, redactor.clone()).await;
        let found = left.finds(ways.iter().map(|(_, written)| &*written.needle));
        assert_eq!(found, None, "said as {way}, it was found");
    }
    ways.len() * (READ.len() + WRITE.len() + OTHERS.len())
}

async fn check_text(secret: &str) {
    let cases = check(secret.as_bytes(), of_text(secret)).await;
    assert!(cases >= 24 * 45, "{cases} cases");
}

#[tokio::test]
async fn a_token_is_nowhere() {
    check_text(TEXTS[0]).await;
}

#[tokio::test]
async fn a_secret_beyond_ascii_is_nowhere() {
    check_text(TEXTS[1]).await;
}

#[tokio::test]
async fn a_secret_that_needs_escapes_is_nowhere() {
    check_text(TEXTS[2]).await;
}

#[tokio::test]
async fn a_key_of_many_lines_is_nowhere_and_none_of_its_lines() {
    check_text(TEXTS[3]).await;
    let redactor = Redactor::new([TEXTS[3]]).unwrap();
    let indented = TEXTS[3].replace('\n', "\n      ");
    let left = world(&indented, None, redactor).await;
    let lines = TEXTS[3].lines().filter(|line| !line.starts_with("---"));
    assert_eq!(left.finds(lines), None);
}

#[tokio::test]
async fn secret_bytes_are_nowhere() {
    let cases = check(&BYTES, of_bytes(&BYTES)).await;
    assert!(cases >= 17 * 45, "{cases} cases");
}

#[tokio::test]
async fn the_search_finds_a_secret_in_every_place_where_nobody_takes_it_out() {
    let ways = of_text(TEXTS[0]);
    for place in READ.iter().chain(&WRITE).chain(&OTHERS) {
        let left = world(TEXTS[0], Some(place), Redactor::default()).await;
        // Of what comes in parts, a part.
        let in_parts = ["two blocks", "progress in parts", "event in parts"].contains(place);
        let found = match in_parts {
            true => left.finds([&TEXTS[0][..TEXTS[0].len() / 3]]),
            false => left.finds(ways.iter().map(|(_, written)| &*written.needle)),
        };
        assert!(found.is_some(), "it is not found in `{place}`");
    }
}

#[tokio::test]
async fn what_cannot_be_found_is_not_found() {
    // As the documentation says: what is encrypted, compressed or spread out is not found.
    let redactor = Redactor::new([TEXTS[0]]).unwrap();
    let lines: String = TEXTS[0].chars().map(|c| format!("{c}\n")).collect();
    let exclusive: String = TEXTS[0].bytes().map(|byte| char::from(byte ^ 1)).collect();
    for text in [lines, exclusive] {
        assert!(!redactor.finds(&text));
    }
}

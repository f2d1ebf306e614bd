//! A batch: reads overlap, writes keep their order, every proposal gets one reply, all is on tape.
//!
//! `cargo run -p tooltape --example batch`

use std::error::Error;
use std::io::{self, Write};

use tooltape::{Empty, Event, MemoryTape, Proposal, Run, State, ToolError, Toolbox, Verdict};
use tooltape::{input, tool, tools};

type Notes = State<Vec<String>>;

#[input]
struct Note {
    text: String,
}

/// Writes a note.
#[tool(Write, reach = Local, process = false, spend = false)]
async fn write(note: Note, notes: Notes) -> Result<(), ToolError> {
    notes.update(|notes| notes.push(note.text))
}

/// Reads all notes.
#[tool(Read)]
async fn read(_: Empty, notes: Notes) -> Result<Vec<String>, ToolError> {
    Ok(notes.get())
}

pub(crate) async fn show(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(tools![write, read])?)
        .policy(|_: &_| Verdict::allow("an example"))
        .grant(Notes::new(Vec::new()))
        .tape(tape.clone());

    let replies = run.batch(vec![
        Proposal::new("a", "read", "{}"),
        Proposal::new("b", "write", r#"{"text": "buy tea"}"#),
        Proposal::new("c", "read", "{}"),
        Proposal::new("d", "wirte", r#"{"text": "drink tea"}"#),
        Proposal::new("e", "write", r#"{"text": 1}"#),
    ]);
    for reply in replies.await? {
        writeln!(out, "{} ({}): {}", reply.id, reply.executed, reply.text())?;
    }

    writeln!(out, "\nthe tape of call b:")?;
    for record in tape.records(run.id()) {
        if record.event.call().is_some_and(|call| call.0 == 2) {
            writeln!(out, "  {}", told(&record.event))?;
        }
    }
    Ok(())
}

fn told(event: &Event) -> String {
    match event {
        Event::Proposed(facts) => format!("proposed {} {}", facts.name, facts.arguments),
        Event::Judged { verdict, rule, .. } => format!("judged: {verdict}, by rule `{rule}`"),
        Event::Started { attempt, .. } => format!("started attempt {attempt}"),
        Event::State { value, .. } => format!("changed the state to {value}"),
        Event::Settled(reply) => format!("settled: {}, {}", reply.executed, reply.text()),
        other => format!("{other:?}"),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    show(&mut io::stdout()).await
}

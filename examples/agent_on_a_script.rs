//! An agent whose model plays a script: it errs, is put right, and answers. No key, no network.
//!
//! `cargo run -p tooltape --example agent_on_a_script`

use std::error::Error;
use std::io::{self, Write};

use tooltape::{Agent, Event, MemoryTape, Run, Script, Toolbox, builtin};

const SCRIPT: &str = r#"
{"ask": "Is the hash of nothing the one that everybody knows?"}
{"say": "I shall see.", "calls": [{"tool": "hsah", "args": {"text": ""}}]}
{"say": "A slip.", "calls": [{"tool": "hash", "text": "{text: }"}]}
{"say": "Once more.", "calls": [{"tool": "hash", "args": {"text": ""}}]}
{"say": "Yes, it is: af1349b9 and so on."}
"#;

pub(crate) async fn show(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let script = Script::parse(SCRIPT)?;
    let question = script.question().ok_or("the script asks")?.to_owned();
    let tape = MemoryTape::default();
    let run = Run::new(&Toolbox::new(builtin::tools())?).tape(tape.clone());
    let agent = Agent::new(script, run);
    let answered = agent.ask(question).await?;

    for record in tape.records(agent.run().id()) {
        match &record.event {
            Event::Asked { text } => writeln!(out, "user:  {text}")?,
            Event::Turn(turn) => {
                writeln!(out, "model: {}", turn.text.as_deref().unwrap_or_default())?;
            }
            Event::Proposed(facts) => writeln!(out, "  {} {}", facts.name, facts.arguments)?,
            Event::Settled(reply) => writeln!(out, "    => {}", reply.text())?,
            _ => {}
        }
    }
    let (turns, calls, errors) = (answered.turns, answered.calls, answered.errors);
    writeln!(out, "\n{turns} turns, {calls} calls, {errors} of them put right")?;
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    show(&mut io::stdout()).await
}

//! A function becomes a tool, is called as a model would call it, and answers what was wrong.
//!
//! `cargo run -p tooltape --example define_and_call`

use std::error::Error;
use std::io::{self, Write};

use tooltape::{Proposal, Run, ToolError, Toolbox, input, tool, tools};

#[input]
struct Trip {
    /// Where it starts.
    from: String,
    /// Where it ends.
    to: String,
    /// How many people travel.
    #[serde(default = "one")]
    people: u8,
}

fn one() -> u8 {
    1
}

/// Finds the price of a train ticket, in euros.
#[tool(Pure, determinism = Deterministic)]
async fn price(trip: Trip) -> Result<u32, ToolError> {
    if trip.from == trip.to {
        return Err(ToolError::tell("the trip ends where it starts"));
    }
    Ok(19 * u32::from(trip.people))
}

pub(crate) async fn show(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    // It is a function still: a test calls it like any other.
    let trip = Trip { from: "Bern".into(), to: "Oslo".into(), people: 2 };
    writeln!(out, "called directly: {:?}", price(trip).await)?;

    let toolbox = Toolbox::new(tools![price])?;
    let spec = toolbox.get("price").map(|tool| tool.spec()).ok_or("it was registered")?;
    writeln!(out, "a model sees: {}, {}, {}", spec.name, spec.description, spec.input["required"])?;

    // A model writes text. What of it becomes a call is decided here, and nowhere else.
    let run = Run::new(&toolbox);
    for arguments in [
        r#"{"from": "Bern", "to": "Oslo", "people": 3}"#,
        r#"{"from": "Bern", "to": "Bern"}"#,
        r#"{"from": "Bern"}"#,
        r#"{"from": "Bern", "to": "Oslo", "peopel": 3}"#,
        r#"{"from": "Bern", "to": "#,
    ] {
        let replies = run.batch(vec![Proposal::new("call_1", "price", arguments)]).await?;
        for reply in replies {
            writeln!(out, "\n{arguments}\n  {}", reply.text())?;
        }
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    show(&mut io::stdout()).await
}

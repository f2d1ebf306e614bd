//! Each turn is offered other tools: a gate decides, tools come and go, a late call still works.
//!
//! `cargo run -p tooltape --example dynamic_offer`

use std::error::Error;
use std::io::{self, Write};

use tooltape::{Access, Empty, Offer, Proposal, Run, ToolError, Toolbox, Verdict, tool, tools};

/// Looks at the switch.
#[tool(Read)]
async fn look(_: Empty) -> Result<&'static str, ToolError> {
    Ok("it is off")
}

/// Turns the switch on.
#[tool(Write)]
async fn turn_on(_: Empty) -> Result<&'static str, ToolError> {
    Ok("it is on")
}

/// Calls for help.
#[tool(Write)]
async fn help(_: Empty) -> Result<&'static str, ToolError> {
    Ok("help is on its way")
}

pub(crate) async fn show(out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let run = Run::new(&Toolbox::new(tools![look, turn_on])?)
        .policy(|_: &_| Verdict::allow("an example"));

    // First the model may only look.
    let reads = run.offer(|spec| spec.effects.access != Access::Write);
    turn(out, &run, "only reads", &reads, "turn_on").await?;

    // Then it may do everything.
    let all = run.offer_all();
    turn(out, &run, "everything", &all, "turn_on").await?;

    // One tool comes and another goes. What was shown before can still be called.
    run.add(help::tool())?;
    run.remove("turn_on")?;
    turn(out, &run, "after the change", &run.offer_all(), "help").await?;
    turn(out, &run, "after the change", &run.offer_all(), "turn_on").await?;
    turn(out, &run, "a late call", &all, "turn_on").await
}

/// Lets a model that was shown `offer` call one tool.
async fn turn(
    out: &mut impl Write,
    run: &Run,
    title: &str,
    offer: &Offer,
    name: &str,
) -> Result<(), Box<dyn Error>> {
    let names: Vec<_> = offer.tools().map(|tool| tool.id().name().as_str()).collect();
    let replies = run.answer(offer, vec![Proposal::new("call_1", name, "{}")]).await?;
    for reply in replies {
        writeln!(out, "{title}: offered {}; {name} => {}", names.join(", "), reply.text())?;
    }
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    show(&mut io::stdout()).await
}

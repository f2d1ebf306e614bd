//! `tooltape chat`.

use std::convert::Infallible;
use std::io::{self, BufRead as _, IsTerminal as _, Read as _};
use std::time::Duration;

#[cfg(unix)]
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use tooltape::{AgentError, Answered, Steer, Stopped};

use super::Context;
use super::run::{Cast, Stage, chosen_model};
use crate::args::Chat;
use crate::escape;
use crate::exit::Exit;
use crate::origin::Origin;
use crate::out::{FAINT, STRONG, paint};
use crate::report::{Problem, Result};
use crate::workspace::Copying;

/// How often somebody looks whether a line was typed.
const TYPED_PACE: Duration = Duration::from_millis(100);
/// The most bytes of a line that is asked.
const LINE_BYTES_MAX: u64 = 1 << 20;

/// Talks with an agent until there is nothing more to ask.
///
/// Each line is asked in the same conversation; a line that is typed while the model is at work is
/// said to it before its next turn. Ctrl-C interrupts the model at work, and whoever
/// talks goes on; at the prompt it ends the session, and so does the end of the input.
pub(super) async fn chat(context: &Context<'_>, args: &Chat) -> Result<Exit> {
    let layers = context.layers(&args.folder)?;
    let model = chosen_model(&layers)?;
    let kept = context.location()?.open(context.out)?;
    let prepared = context.host.prepare(&layers, &args.folder, Copying::Fresh)?;
    let origin = Origin::new(&args.folder, &prepared.workspace).asking(args.how.model.as_deref());
    let cast = Cast { layers: &layers, prepared, origin, model };
    let (stage, agent, _) = Stage::open(context, &args.how, kept, cast).await?;
    if is_attended() {
        let how = "say something; Ctrl-C interrupts the model, Ctrl-D ends the session";
        context.out.say(&paint(FAINT, how));
    }
    let steer = agent.steer();
    let mut conversation = agent.open();
    let mut last: Option<std::result::Result<Answered, AgentError>> = None;
    while let Some(line) = ask(context, &stage).await? {
        let presses = stage.stop.presses();
        let answering = conversation.ask(line);
        let answered = tokio::select! {
            answered = answering => answered,
            never = interrupting(&stage, presses, &steer) => match never {},
            never = steering(&stage, &steer) => match never {},
            never = stage.tape.renew() => match never {},
        };
        stage.tape.clear();
        let goes_on = match &answered {
            Ok(answered) => {
                told(context, args, answered)?;
                answered.stop != Stopped::Paused
            }
            // Whoever is there may wait, and ask again.
            Err(AgentError::Model(err)) if is_attended() && err.is_passing() => {
                context.out.warn(&escape::line(&err.to_string()));
                true
            }
            Err(_) => false,
        };
        last = Some(answered);
        if !goes_on {
            break;
        }
    }
    let Some(last) = last else {
        return Ok(Exit::Done);
    };
    let closed = conversation.close(last).await;
    stage.finish(closed)
}

/// Waits for Ctrl-C, and interrupts the turn each time.
async fn interrupting(stage: &Stage<'_>, presses: u32, steer: &Steer) -> Infallible {
    let mut presses = presses;
    loop {
        presses += 1;
        stage.stop.pressed(presses).await;
        steer.interrupt();
    }
}

/// Says what is typed while the model is at work to it, before its next turn.
async fn steering(stage: &Stage<'_>, steer: &Steer) -> Infallible {
    loop {
        tokio::time::sleep(TYPED_PACE).await;
        // What is typed while a card is shown answers it.
        if !is_attended() || stage.tape.is_asking() || !is_typed() {
            continue;
        }
        let Ok(Some(text)) = line() else { std::future::pending().await };
        let Some(text) = text.ok().filter(|text| !text.trim().is_empty()) else { continue };
        match steer.say(text) {
            Ok(()) => stage.context.out.say(&paint(FAINT, "it reads that before its next turn")),
            Err(err) => stage.context.out.warn(&err.to_string()),
        }
    }
}

/// Whether a whole line was typed.
#[cfg(unix)]
fn is_typed() -> bool {
    let stdin = io::stdin();
    let mut asked = [PollFd::new(&stdin, PollFlags::IN)];
    let now = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut asked, Some(&now)).is_ok_and(|ready| ready > 0)
}

/// Elsewhere nobody can tell without waiting for it.
#[cfg(not(unix))]
fn is_typed() -> bool {
    false
}

/// Prints what the model said, or why it said nothing.
fn told(context: &Context<'_>, args: &Chat, answered: &Answered) -> Result {
    if args.how.jsonl {
        return Ok(());
    }
    match (&answered.text, answered.stop) {
        (Some(text), _) => context.out.data(text),
        (None, Stopped::Answer) => Ok(()),
        (None, stop) => {
            context.out.say(&paint(FAINT, format!("the turn ended: {}", stop.word())));
            Ok(())
        }
    }
}

fn is_attended() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// The next line, or nothing at the end of the input and after Ctrl-C.
async fn ask(context: &Context<'_>, stage: &Stage<'_>) -> Result<Option<String>> {
    loop {
        // Whoever sees the prompt may press at once.
        let presses = stage.stop.presses();
        if is_attended() {
            context.out.prompt(&paint(STRONG, "> "));
        }
        let line = tokio::select! {
            line = tokio::task::spawn_blocking(line) => line,
            () = stage.stop.pressed(presses + 1) => return Ok(None),
        };
        let line = line.map_err(|_| unreadable("the input cannot be read"))?;
        match line.map_err(|err| unreadable(&err.to_string()))? {
            None => return Ok(None),
            Some(Err(why)) => context.out.warn(&format!("{why}: the line is not asked")),
            Some(Ok(line)) if line.trim().is_empty() => {}
            Some(Ok(line)) => return Ok(Some(line)),
        }
    }
}

/// The next line, or why it is none; nothing at the end of the input.
fn line() -> io::Result<Option<std::result::Result<String, String>>> {
    let mut bytes = Vec::new();
    let mut stdin = io::stdin().lock();
    if stdin.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.len() as u64 == LINE_BYTES_MAX && !bytes.ends_with(b"\n") {
        stdin.skip_until(b'\n')?;
        return Ok(Some(Err(format!("it has more than {LINE_BYTES_MAX} bytes"))));
    }
    let text = String::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned());
    Ok(Some(text.map(|text| text.trim_end_matches(['\r', '\n']).to_owned())))
}

fn unreadable(why: &str) -> Box<Problem> {
    Problem::new(Exit::Usage, "input.unreadable", why).hint("say what to ask, a line at a time")
}

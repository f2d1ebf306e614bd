//! A reply that is an error, as the command reports it.

use tooltape::limits::SHOWN_BYTES_MAX;
use tooltape::{
    BoundKind, Doc, Executed, FaultKind, FaultView, Limits, Node, Proposal, Reply, Toolbox,
};

use crate::exit::Exit;
use crate::host::Host;
use crate::interrupt::Cause;
use crate::report::{Excerpt, Problem};

/// The problem with a reply, if there is one.
pub(crate) fn problem(
    host: &Host,
    toolbox: &Toolbox,
    proposal: &Proposal,
    reply: &Reply,
    cause: Option<Cause>,
) -> Option<Box<Problem>> {
    let fault = reply.fault.as_ref()?;
    let name = &reply.name;
    let (exit, code) = class(fault, cause);
    let hint = match (exit, &*fault.code) {
        (_, "tool.unknown") if host.has(name) => {
            "the configuration takes it away: see `tooltape config explain tools.disable`".into()
        }
        (_, "tool.unknown") => "`tooltape tools list` lists the tools".into(),
        (Exit::Arguments, _) => format!("`tooltape tools show {name}` prints what it takes"),
        (Exit::Denied, _) if fault.rule.as_deref() == Some("rights") => {
            "`tooltape config explain policy.rights` prints what runs may do".into()
        }
        (Exit::Denied, _) => "`tooltape config explain policy.rules` prints the rules".into(),
        (Exit::Unasked, _) => "say yes with `--yes`, or add a rule to `tooltape.toml`".into(),
        (Exit::Timeout, _) => "give it longer with `--timeout`".into(),
        _ => match reply.executed {
            Executed::NotExecuted => "nothing was done, so it can be tried again".to_owned(),
            Executed::Executed | Executed::Unknown => {
                format!("look at what `{name}` was to do before you repeat it")
            }
        },
    };
    let excerpt = match exit {
        Exit::Arguments => excerpt(toolbox, proposal),
        _ => None,
    };
    let message = fault.message.to_string();
    Some(Problem::new(exit, code, message).hint(hint).executed(reply.executed).excerpt(excerpt))
}

fn class(fault: &FaultView, cause: Option<Cause>) -> (Exit, String) {
    let is_time = fault.bound.is_some_and(BoundKind::is_time);
    let code = fault.code.to_string();
    let exit = match (fault.kind, cause) {
        // The question was withdrawn.
        (FaultKind::Denied, Some(Cause::Interrupt)) => Exit::Interrupted,
        (FaultKind::Denied, _) if fault.unasked => {
            return (Exit::Unasked, "approval.needed".to_owned());
        }
        (FaultKind::Denied, _) => Exit::Denied,
        (FaultKind::Repair, _) if code.starts_with("tool.") => Exit::Failed,
        (FaultKind::Repair, _) => Exit::Arguments,
        (FaultKind::Exceeded, _) if is_time => Exit::Timeout,
        (FaultKind::Cancelled, Some(Cause::Timeout)) => Exit::Timeout,
        (FaultKind::Cancelled, Some(Cause::Interrupt)) => Exit::Interrupted,
        (FaultKind::Bug, _) => Exit::Unexpected,
        _ => Exit::Failed,
    };
    (exit, code)
}

/// Where in the arguments the mistake is.
fn excerpt(toolbox: &Toolbox, proposal: &Proposal) -> Option<Excerpt> {
    let text = proposal.text().to_string();
    let name = format!("{} arguments", proposal.name);
    if let Some((error, _)) = proposal.failure() {
        let start = text.find('=').map_or(0, |at| at + 1);
        let span = start..text.len();
        return Some(Excerpt { name, span, text, label: error.to_owned() });
    }
    let (span, label) = match Doc::read(&text, &Limits::default()) {
        Err(err) => {
            let at = text.floor_char_boundary(err.at());
            let len = text[at..].chars().next().map_or(0, char::len_utf8);
            (at..at + len, err.to_string())
        }
        Ok(doc) => {
            let mismatch = toolbox.get(&proposal.name)?.input().check(&doc).err()?;
            let problem = mismatch.problems().first()?;
            let node = at(doc.root(), &problem.pointer)?;
            // An unknown field is named by its object, and found in it.
            let node = node.get(&problem.found).unwrap_or(node);
            (node.offset()..node.offset() + node.raw().len(), problem.to_string())
        }
    };
    let label = label.chars().take(SHOWN_BYTES_MAX).collect();
    Some(Excerpt { name, span, text, label })
}

/// The node that a JSON pointer leads to.
fn at<'d>(root: Node<'d>, pointer: &str) -> Option<Node<'d>> {
    pointer.split('/').skip(1).try_fold(root, |node, part| {
        let part = part.replace("~1", "/").replace("~0", "~");
        node.get(&part).or_else(|| node.items().nth(part.parse().ok()?))
    })
}

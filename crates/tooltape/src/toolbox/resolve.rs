//! From untrusted text to a call: the one function that parses what a model wrote.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;

use super::{Offer, Repairs, repair};
use crate::canon::{Canon, Doc, Flat, Kind, Limits};
use crate::fault::{Repair, clip};
use crate::grant::SECRET_SENT;
use crate::proposal::{Arguments, Proposal, RepairStep, Resolved};
use crate::schema::nearest;
use crate::spec::Access;
use crate::tool::Registered;

/// The most bytes of the model's own text that a reply shows back to it.
pub const SHOWN_BYTES_MAX: usize = 256;

/// How a run reads arguments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) limits: Limits,
    pub(crate) repairs: Repairs,
}

/// A call, or what the model must mend.
pub(super) fn resolve(
    offer: &Offer,
    proposal: &Proposal,
    reading: &Reading,
) -> Result<Resolved, Repair> {
    let registered = offered(offer, &proposal.name)?;
    let text = match &proposal.arguments {
        Arguments::Text(text) => text,
        Arguments::Unparsed { error, .. } if error == SECRET_SENT => return Err(telling()),
        Arguments::Unparsed { raw, error } => return Err(malformed(error, raw)),
    };
    if text.trim_ascii().is_empty() {
        let (args, repairs) = empty(registered, reading)?;
        return typed(registered, args, repairs);
    }
    let mut repaired = repair::Text::new(text);
    if reading.repairs.any() {
        repaired.unwrap(&reading.repairs);
    }
    let args = match checked(registered, repaired.text(), text, reading) {
        Err(_) if repaired.respell(registered, &reading.repairs, &reading.limits) => {
            checked(registered, repaired.text(), text, reading)?
        }
        checked => checked?,
    };
    typed(registered, args, repaired.steps())
}

/// A call of an offered tool whose arguments are a flat object and surely fit: most calls. Of all
/// others, [`resolve`] says why not.
#[inline]
pub(super) fn at_once(offer: &Offer, proposal: &Proposal, reading: &Reading) -> Option<Resolved> {
    let registered = offer.find(&proposal.name)?;
    let Arguments::Text(text) = &proposal.arguments else { return None };
    if !offer.shows(registered.id().name()) {
        return None;
    }
    let mut flat = Flat::new();
    flat.read(text, &reading.limits)?;
    if !registered.input().surely_takes(&flat) {
        return None;
    }
    let hooks = &registered.spec().hooks;
    let typed = match &hooks.read {
        Some(_) => {
            let read = hooks.read_flat()?;
            Some(panic::catch_unwind(AssertUnwindSafe(|| read(&flat))).ok()??)
        }
        None => None,
    };
    let (registered, args) = (registered.clone(), Canon::of_flat(&flat, text));
    Some(Resolved { registered, args, typed, repairs: Vec::new() })
}

#[inline]
fn offered<'a>(offer: &'a Offer, name: &str) -> Result<&'a Arc<Registered>, Repair> {
    let shown = || clip(name.to_owned(), SHOWN_BYTES_MAX);
    match offer.find(name) {
        Some(registered) if offer.shows(registered.id().name()) => Ok(registered),
        Some(_) => Err(Repair::new(
            "tool.not_offered",
            format!("tool `{}` is not offered this turn", shown()),
        )),
        None => {
            let names = offer.tools().map(|tool| tool.id().name().as_str());
            let hint = match nearest(name, names) {
                Some(near) => format!(": did you mean `{near}`?"),
                None => String::new(),
            };
            Err(Repair::new("tool.unknown", format!("unknown tool `{}`{hint}", shown())))
        }
    }
}

/// Nothing was sent. That means `{}` only where nothing is required and nothing is changed.
#[cold]
fn empty(registered: &Registered, reading: &Reading) -> Result<(Canon, Vec<RepairStep>), Repair> {
    let harmless = registered.spec().effects.access != Access::Write;
    match registered.input().accepts_empty_object() {
        true if harmless => Ok((Canon::empty_object(), Vec::new())),
        true if reading.repairs.empty => Ok((Canon::empty_object(), vec![RepairStep::Empty])),
        true | false => {
            Err(Repair::new("args.empty", "arguments are empty, expected a JSON object"))
        }
    }
}

#[inline]
fn checked(
    registered: &Registered,
    text: &str,
    sent: &Arc<str>,
    reading: &Reading,
) -> Result<Canon, Repair> {
    let doc = Doc::read(text, &reading.limits).map_err(|err| malformed(&err, text))?;
    if doc.root().kind() != Kind::Object {
        let message = "arguments could not be deserialised: expected a JSON object";
        return Err(Repair::new("args.invalid", format!("{message}, found `{}`", shown(text))));
    }
    registered.input().check(&doc).map_err(|mismatch| {
        let message = format!("arguments could not be deserialised: {mismatch}");
        Repair::new("args.invalid", message)
    })?;
    Ok(doc.canonical_in(sent))
}

#[inline]
fn typed(
    registered: &Arc<Registered>,
    args: Canon,
    repairs: Vec<RepairStep>,
) -> Result<Resolved, Repair> {
    let typed = match &registered.spec().hooks.read {
        Some(read) => Some(isolated(|| read(&args))?),
        None => None,
    };
    Ok(Resolved { registered: registered.clone(), args, typed, repairs })
}

/// The tool's own code reads and checks its input, and a model chooses what it gets to see.
fn isolated<T>(read: impl FnOnce() -> Result<T, Repair>) -> Result<T, Repair> {
    panic::catch_unwind(AssertUnwindSafe(read)).unwrap_or_else(|_| {
        Err(Repair::new("args.unchecked", "the tool failed to check these arguments"))
    })
}

#[cold]
fn malformed(error: &dyn std::fmt::Display, raw: &str) -> Repair {
    let message = format!("your JSON was malformed: {error}; you sent `{}`", shown(raw));
    Repair::new("args.malformed", message)
}

/// What a model reads whose arguments hold a secret.
pub(crate) fn telling() -> Repair {
    let message = format!("{SECRET_SENT}: leave it out, a tool that needs it has it already");
    Repair::new("args.secret", message)
}

fn shown(text: &str) -> String {
    let end = text.floor_char_boundary(SHOWN_BYTES_MAX + 1);
    clip(text[..end].to_owned(), SHOWN_BYTES_MAX)
}

//! How a card is drawn: short, in columns, and with nothing left out.

use std::collections::BTreeSet;

use tooltape::Enforced;

use super::{Bounds, Card, Previewed, Touch};
use crate::escape;
use crate::members::{joined, members};
use crate::out::{BAD, FAINT, GOOD, STRONG, paint};

/// How wide the names of a card's rows are.
const NAME_COLUMNS: usize = 10;
/// What stands before each line of a row.
const MARGIN_COLUMNS: usize = NAME_COLUMNS + 3;
/// The longest arguments that stand on one line, in characters.
const LINE_CHARS_MAX: usize = 60;
/// How many characters beyond ASCII are spelled out.
const SPELLED_MAX: usize = 24;
/// What begins the rest of a line that was too long for the screen.
const GOES_ON: &str = "↪ ";

/// How wide the screen is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Columns(pub(crate) usize);

impl Columns {
    /// Lines are as long as they are.
    pub(crate) const ENDLESS: Columns = Columns(usize::MAX);
}

impl Card {
    /// The card for people. No line of it is wider than the screen.
    pub(crate) fn text(&self, columns: Columns) -> String {
        let room = columns.0.saturating_sub(MARGIN_COLUMNS).max(NAME_COLUMNS);
        let mut lines = vec![self.title()];
        for Row { name, text, is_diff } in self.rows() {
            for (at, line) in wrapped(&text, room).iter().enumerate() {
                let name = if at == 0 { name } else { "" };
                let line = if is_diff { painted(line) } else { line.clone() };
                lines.push(format!("  {} {line}", paint(FAINT, format!("{name:<NAME_COLUMNS$}"))));
            }
        }
        lines.join("\n")
    }

    fn title(&self) -> String {
        let tool = paint(STRONG, escape::line(&self.tool));
        let effect = self.effect.as_ref().map_or(String::new(), |effect| format!(" · {effect}"));
        let again = match self.attempt {
            Some(attempt) => format!(" · nobody knows what attempt {attempt} did"),
            None => String::new(),
        };
        format!("{} {tool}{effect}{again}", paint(STRONG, "?"))
    }

    fn rows(&self) -> Vec<Row> {
        let mut rows = vec![Row::new("arguments", self.arguments())];
        rows.extend(self.beyond_ascii().map(|text| Row::new("letters", text)));
        rows.extend(self.preview.as_ref().map(|preview| match preview {
            Previewed::Shown(diff) => {
                Row { name: "change", text: escape::text(diff).into_owned(), is_diff: true }
            }
            Previewed::Unknown(why) => {
                Row::new("change", format!("cannot be shown: {}", escape::line(why)))
            }
        }));
        if !self.touches.is_empty() {
            rows.push(Row::new("touches", touched(&self.touches)));
        }
        rows.extend(self.bounds.as_ref().map(|bounds| Row::new("bounds", bounded(bounds))));
        if !self.untrusted.is_empty() {
            let sources: Vec<_> = self.untrusted.iter().map(|it| escape::line(it)).collect();
            let text = format!(
                "the model had read what nobody vouches for: {}\na yes is for exactly this call",
                sources.join(", "),
            );
            rows.push(Row::new("untrusted", text));
        }
        if self.changed {
            let text = "its tool is another by now: a yes would be none, `resume` asks again";
            rows.push(Row::new("changed", text.to_owned()));
        }
        if self.other_change {
            let text =
                "it would have changed something else when it was asked: `resume` asks again";
            rows.push(Row::new("changed", text.to_owned()));
        }
        rows.extend(self.names());
        rows
    }

    /// Who asks, until when, and by which names.
    fn names(&self) -> Vec<Row> {
        let mut rows = Vec::new();
        if self.attempt.is_none() {
            rows.push(Row::new("asked by", escape::line(&self.rule).into_owned()));
        }
        if let Some(until) = &self.until {
            let word = if self.expired { "expired" } else { "until" };
            rows.push(Row::new("stands", format!("{word} {until}")));
        }
        if let Some(run) = self.run {
            let asked = self.asked.as_ref().map_or(String::new(), |at| format!(", asked {at}"));
            rows.push(Row::new("call", format!("{} of run {run}{asked}", self.call)));
        }
        rows.push(Row::new("args hash", self.args_hash.to_string()));
        rows.extend(self.id.map(|id| Row::new("question", id.to_string())));
        rows
    }

    /// The canonical text, every byte of it; where it is long, each member on a line of its own.
    fn arguments(&self) -> String {
        let Some(args) = &self.args else { return "unknown".to_owned() };
        let text = escape::json(args.as_str()).into_owned();
        let members = members(args);
        if text.chars().count() <= LINE_CHARS_MAX || joined(&members) != args.as_str() {
            return text;
        }
        let members = members.iter().map(|member| joined([member]));
        let members: Vec<String> =
            members.map(|it| escape::json(&it[1..it.len() - 1]).into_owned()).collect();
        format!("{{{}}}", members.join(",\n "))
    }

    /// Which letters look like others, or may: those that are not ASCII.
    fn beyond_ascii(&self) -> Option<String> {
        let args = self.args.as_ref()?.as_str();
        let letters: BTreeSet<char> = args.chars().filter(|c| !c.is_ascii()).collect();
        if letters.is_empty() {
            return None;
        }
        let spelled = letters.iter().take(SPELLED_MAX);
        let spelled = spelled.map(|c| format!("{} U+{:04X}", alone(*c), *c as u32));
        let more = letters.len().saturating_sub(SPELLED_MAX);
        let more = (more > 0).then(|| format!("and {more} more"));
        let spelled: Vec<String> = spelled.chain(more).collect();
        Some(format!("beyond ASCII: {}", spelled.join(", ")))
    }
}

/// One thing that a card says.
struct Row {
    name: &'static str,
    text: String,
    is_diff: bool,
}

impl Row {
    fn new(name: &'static str, text: String) -> Row {
        Row { name, text, is_diff: false }
    }
}

/// What is read and written, one line for each place.
fn touched(touches: &[Touch]) -> String {
    let places = touches.chunk_by(|one, next| one.path.is_some() && one.path == next.path);
    let line = |place: &[Touch]| {
        let Touch { right, path, leads_to } = &place[0];
        let Some(path) = path else { return escape::line(right).into_owned() };
        let verbs: Vec<&str> = place.iter().map(|touch| verb(&touch.right)).collect();
        let leads_to = leads_to.as_ref();
        let leads_to =
            leads_to.map_or(String::new(), |to| format!(", which leads to {}", escape::line(to)));
        format!("{} {}{leads_to}", verbs.join(" and "), escape::line(path))
    };
    places.map(line).collect::<Vec<_>>().join("\n")
}

fn verb(right: &str) -> &'static str {
    if right.starts_with("fs:write:") { "writes" } else { "reads" }
}

fn bounded(bounds: &Bounds) -> String {
    let Bounds { enforced_by, handles, folder, rights } = bounds;
    let wall = match enforced_by {
        Enforced::Declaration => "nothing but its own word",
        Enforced::Host => "no sandbox: native code",
        Enforced::Sandbox => "a sandbox of the operating system",
        Enforced::Wasm => "a WASM runtime",
    };
    let folder = folder.as_ref();
    let folder = folder.map_or(String::new(), |it| format!(", in {}", escape::line(it)));
    let handles = match handles.as_slice() {
        [] => "no handle".to_owned(),
        handles => escape::line(&handles.join(", ")).into_owned(),
    };
    let rights = rights.to_string().replace('\n', ", ");
    let rights = if rights.is_empty() { "none".into() } else { escape::line(&rights) };
    format!("{wall}, given {handles}{folder}\nrights of the run: {rights}")
}

/// A character by itself: a mark would stand upon what is before it.
fn alone(c: char) -> String {
    if c.is_alphanumeric() {
        escape::line(&c.to_string()).into()
    } else {
        c.escape_unicode().to_string()
    }
}

/// The lines of a text, none of them wider than this.
fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.trim_end_matches('\n').split('\n') {
        let (mut piece, mut width) = (String::new(), 0);
        for c in line.chars() {
            // A letter beyond ASCII may take two columns, and a tab several.
            let columns_of = match c {
                '\t' => 8,
                c if c.is_ascii() => 1,
                _ => 2,
            };
            if width + columns_of > columns {
                lines.push(std::mem::replace(&mut piece, GOES_ON.to_owned()));
                width = GOES_ON.chars().count();
            }
            piece.push(c);
            width += columns_of;
        }
        lines.push(piece);
    }
    lines
}

fn painted(line: &str) -> String {
    match line.chars().next() {
        Some('+') => paint(GOOD, line),
        Some('-') => paint(BAD, line),
        Some(_) | None => line.to_owned(),
    }
}

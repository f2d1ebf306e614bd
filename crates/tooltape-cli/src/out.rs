//! The one writer: data goes to stdout, all else to stderr.

use std::borrow::Cow;
use std::io::{self, IsTerminal as _, Write};
use std::sync::OnceLock;

use anstream::{AutoStream, ColorChoice};
use clap::builder::styling::{AnsiColor, Style};
use serde::Serialize;
use tooltape::Redactor;

use crate::escape;
use crate::exit::Exit;
use crate::report::{Drawing, Problem, Result};

/// What the user wants printed, and what the streams can show.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Out {
    pub(crate) format: Format,
    pub(crate) detail: Detail,
    color: Color,
}

/// How data is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// For people.
    Text,
    /// One JSON document.
    Json,
}

/// How much is narrated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Detail {
    /// Problems alone.
    Quiet,
    /// One line for each thing that happens.
    Normal,
    /// Everything, in full.
    Verbose,
}

/// Who decides about colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Color {
    /// The environment and the stream.
    Auto,
    /// The user: none.
    Never,
}

/// What is good.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// What is not.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// What matters less.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// What matters more.
pub(crate) const STRONG: Style = Style::new().bold();

/// A text in a style.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{style}{text}{style:#}")
}

/// What is never printed, whatever prints it.
static SECRETS: OnceLock<Redactor> = OnceLock::new();

/// Lets nothing be printed from now on that holds one of these secrets.
pub(crate) fn keep_out(secrets: Redactor) {
    let _as_before = SECRETS.set(secrets);
}

/// A text without secrets.
fn clean(text: &str) -> Cow<'_, str> {
    SECRETS.get().map_or(Cow::Borrowed(text), |secrets| secrets.redact(text))
}

/// A JSON document without secrets.
fn clean_json(json: &str) -> Cow<'_, str> {
    SECRETS.get().map_or(Cow::Borrowed(json), |secrets| secrets.redact_json(json))
}

impl Out {
    pub(crate) fn new(format: Format, detail: Detail, color: Color) -> Out {
        Out { format, detail, color }
    }

    /// Data that others wrote, as a person reads it. A pipe gets it as it is.
    pub(crate) fn data(&self, text: &str) -> Result {
        let (stdout, text) = (io::stdout(), clean(text));
        let shown = if stdout.is_terminal() { escape::text(&text) } else { text.clone() };
        printed(write_line(&mut stdout.lock(), &shown))
    }

    /// Data in our own words, with our own colours.
    pub(crate) fn table(&self, text: &str) -> Result {
        let stdout = io::stdout();
        let choice = self.choice(AutoStream::choice(&stdout));
        printed(write_line(&mut AutoStream::new(stdout.lock(), choice), &clean(text)))
    }

    /// One JSON document on one line.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result {
        self.document(&serde_json::to_string(value))
    }

    /// One JSON document for people to read.
    pub(crate) fn pretty(&self, value: &impl Serialize) -> Result {
        self.document(&serde_json::to_string_pretty(value))
    }

    fn document(&self, json: &serde_json::Result<String>) -> Result {
        match json {
            Ok(json) => {
                let json = clean_json(json);
                printed(write_line(&mut io::stdout().lock(), &escape::json(&json)))
            }
            Err(err) => Err(Problem::new(
                Exit::Unexpected,
                "output.unserialisable",
                format!("the output could not be written as JSON: {err}"),
            )),
        }
    }

    /// Narration for people. Nobody waits for it, so a closed stream is no problem.
    pub(crate) fn say(&self, text: &str) {
        if self.format == Format::Text && self.detail >= Detail::Normal {
            self.narrate(text);
        }
    }

    /// What people must not miss, however little they want to read.
    pub(crate) fn warn(&self, text: &str) {
        if self.format == Format::Text {
            self.narrate(text);
        }
    }

    /// A question to a person, after which the cursor stays.
    pub(crate) fn prompt(&self, text: &str) {
        let stderr = io::stderr();
        let choice = self.choice(AutoStream::choice(&stderr));
        let mut stream = AutoStream::new(stderr.lock(), choice);
        let _nobody_reads = stream.write_all(clean(text).as_bytes()).and_then(|()| stream.flush());
    }

    /// Reports a problem on stderr.
    pub(crate) fn problem(&self, problem: &Problem) {
        match self.format {
            Format::Json => self.narrate(&clean_json(&problem.json())),
            Format::Text => {
                let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
                let drawing = if is_dumb { Drawing::Ascii } else { Drawing::Unicode };
                self.narrate(&problem.text(drawing));
            }
        }
    }

    fn narrate(&self, text: &str) {
        let stderr = io::stderr();
        let choice = self.choice(AutoStream::choice(&stderr));
        let text = clean(text);
        let _nobody_reads = write_line(&mut AutoStream::new(stderr.lock(), choice), &text);
    }

    fn choice(&self, auto: ColorChoice) -> ColorChoice {
        match self.color {
            Color::Auto => auto,
            Color::Never => ColorChoice::Never,
        }
    }
}

fn write_line(stream: &mut impl Write, text: &str) -> io::Result<()> {
    // One write for each line, so that lines of two threads never mix.
    let line = if text.ends_with('\n') { text.to_owned() } else { format!("{text}\n") };
    stream.write_all(line.as_bytes())?;
    stream.flush()
}

/// A reader that went away has read enough.
fn printed(result: io::Result<()>) -> Result {
    match result {
        Err(err) if err.kind() != io::ErrorKind::BrokenPipe => {
            let message = format!("stdout could not be written: {err}");
            Err(Problem::new(Exit::Unexpected, "output.failed", message))
        }
        Ok(()) | Err(_) => Ok(()),
    }
}

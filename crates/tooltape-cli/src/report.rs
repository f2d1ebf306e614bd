//! What went wrong, as a person reads it with its source and as a program reads it in one line.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use miette::{
    Diagnostic, GraphicalReportHandler, GraphicalTheme, LabeledSpan, NamedSource, SourceCode,
};
use serde::Serialize;
use tooltape::{Executed, RunId};

use crate::escape;
use crate::exit::Exit;
use crate::program;

/// The most bytes of a source that a report shows; a larger one is described in words alone.
const SOURCE_BYTES_MAX: usize = 64 << 10;
/// The longest line of a source that a report shows, in characters.
const LINE_CHARS_MAX: usize = 500;

/// Why a command did not do what it was asked.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) exit: Exit,
    pub(crate) code: Cow<'static, str>,
    pub(crate) message: String,
    pub(crate) hint: String,
    pub(crate) executed: Executed,
    /// Whether the command could have executed anything, so that it says whether it did.
    executes: bool,
    pub(crate) run: Option<RunId>,
    pub(crate) excerpt: Option<Excerpt>,
}

/// The result of a command.
pub(crate) type Result<T = ()> = std::result::Result<T, Box<Problem>>;

/// A place in a text that a report shows.
#[derive(Clone, Debug)]
pub(crate) struct Excerpt {
    /// What the text is called.
    pub(crate) name: String,
    /// The whole text.
    pub(crate) text: String,
    /// Where, in bytes.
    pub(crate) span: Range<usize>,
    /// What is wrong there.
    pub(crate) label: String,
}

impl Problem {
    /// A problem before anything was executed.
    pub(crate) fn new(
        exit: Exit,
        code: impl Into<Cow<'static, str>>,
        message: impl Into<String>,
    ) -> Box<Problem> {
        Box::new(Problem {
            exit,
            code: code.into(),
            message: message.into(),
            hint: String::new(),
            executed: Executed::NotExecuted,
            executes: true,
            run: None,
            excerpt: None,
        })
    }

    /// Gives it another code.
    pub(crate) fn code(mut self: Box<Self>, code: &'static str) -> Box<Problem> {
        self.code = Cow::Borrowed(code);
        self
    }

    /// Ends the command in another way.
    pub(crate) fn exit(mut self: Box<Self>, exit: Exit) -> Box<Problem> {
        self.exit = exit;
        self
    }

    /// Says what to do about it.
    pub(crate) fn hint(mut self: Box<Self>, hint: impl Into<String>) -> Box<Problem> {
        self.hint = hint.into();
        self
    }

    /// Says what happened before it.
    pub(crate) fn executed(mut self: Box<Self>, executed: Executed) -> Box<Problem> {
        self.executed = executed;
        self
    }

    /// Says that the command executes nothing in any case.
    pub(crate) fn of_files(mut self: Box<Self>) -> Box<Problem> {
        self.executes = false;
        self
    }

    /// Says in which run.
    pub(crate) fn run(mut self: Box<Self>, run: RunId) -> Box<Problem> {
        self.run = Some(run);
        self
    }

    /// Shows the place.
    pub(crate) fn excerpt(mut self: Box<Self>, excerpt: Option<Excerpt>) -> Box<Problem> {
        self.excerpt = excerpt;
        self
    }

    /// The hint, which ends with whether anything happened where anything could.
    fn advice(&self) -> String {
        // Another program's command line has another name.
        let hint = self.hint.replace("`tooltape ", &format!("`{} ", program::name()));
        let happened = match self.executed {
            Executed::NotExecuted => "not executed",
            Executed::Executed => "executed",
            Executed::Unknown => "whether it was executed is unknown",
        };
        match (hint.as_str(), self.executes) {
            (_, false) => hint,
            ("", true) => happened.to_owned(),
            (hint, true) => format!("{hint}; {happened}"),
        }
    }

    /// One line for programs.
    pub(crate) fn json(&self) -> String {
        #[derive(Serialize)]
        struct Line<'a> {
            error: Error<'a>,
        }
        #[derive(Serialize)]
        struct Error<'a> {
            code: &'a str,
            message: &'a str,
            hint: String,
            executed: Executed,
            run: Option<RunId>,
        }
        let Problem { code, message, executed, run, .. } = self;
        let hint = self.advice();
        let error = Error { code, message, hint, executed: *executed, run: *run };
        let json = serde_json::to_string(&Line { error }).expect("strings serialise");
        escape::json(&json).into_owned()
    }

    /// The report for people, with colours that the stream takes out where nobody wants them.
    pub(crate) fn text(&self, drawing: Drawing) -> String {
        let mut theme = match drawing {
            Drawing::Unicode => GraphicalTheme::unicode(),
            Drawing::Ascii => GraphicalTheme::ascii(),
        };
        theme.characters.error = format!("error[{}]:", escape::line(&self.code));
        let handler = GraphicalReportHandler::new_themed(theme)
            .with_wrap_lines(false)
            .with_context_lines(1)
            .with_links(false);
        let mut report = String::new();
        let shown = Shown::new(self);
        handler.render_report(&mut report, &shown).expect("a string takes everything");
        // The handler indents everything, and a report starts at the margin.
        let report = report.trim_end().to_owned();
        match report.split_once("error[") {
            Some((before, rest)) => format!("{}error[{rest}", before.trim_start()),
            None => report,
        }
    }
}

/// With which characters a report is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drawing {
    Unicode,
    Ascii,
}

/// A problem as it is drawn: every text in it is safe to show.
#[derive(Debug)]
struct Shown {
    message: String,
    help: String,
    source: Option<NamedSource<String>>,
    label: Option<LabeledSpan>,
}

impl Shown {
    fn new(problem: &Problem) -> Shown {
        let message = escape::text(&problem.message).into_owned();
        let help = escape::text(&problem.advice()).into_owned();
        let drawn = problem.excerpt.as_ref().filter(|excerpt| fits(excerpt));
        let source = drawn.map(|excerpt| {
            let name = escape::line(&excerpt.name);
            NamedSource::new(name, escape::text(&excerpt.text).into_owned())
        });
        let label = drawn.map(|excerpt| {
            let Excerpt { text, span, label, .. } = excerpt;
            let shown = |range: Range<usize>| escape::text(&text[range]).len();
            let start = text.floor_char_boundary(span.start);
            let end = text.ceil_char_boundary(span.end.max(start));
            let label = Some(escape::line(label).into_owned());
            LabeledSpan::new(label, shown(0..start), shown(start..end))
        });
        Shown { message, help, source, label }
    }
}

fn fits(excerpt: &Excerpt) -> bool {
    let Excerpt { text, span, .. } = excerpt;
    text.len() <= SOURCE_BYTES_MAX
        && span.end <= text.len()
        && text.lines().all(|line| line.chars().count() <= LINE_CHARS_MAX)
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Shown {}

impl Diagnostic for Shown {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        match self.help.is_empty() {
            true => None,
            false => Some(Box::new(&self.help)),
        }
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.source.as_ref().map(|source| source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        Some(Box::new(self.label.iter().cloned()))
    }
}

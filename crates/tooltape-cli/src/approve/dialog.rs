//! The conversation with a person about one call.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use tooltape::rule::Glob;
use tooltape::{Answer, Pending};

use super::pages::Screen;
use crate::card::Card;
use crate::escape;
use crate::members::{members, text_of};
use crate::out::{FAINT, Out, paint};
use crate::report::Problem;
use crate::saved::{Asking, Entry, Pattern, Saved};
use crate::when::{self, LIFETIME_DEFAULT, lifetime};

/// The most bytes of an answer that are read.
const ANSWER_BYTES_MAX: u64 = 1_024;
/// The most pages that anybody is asked to read.
const PAGES_MAX: usize = 64;
/// How often a person may change their mind about one call.
const TRIES_MAX: usize = 16;

/// One call, and somebody who is asked about it.
pub(super) struct Dialog {
    out: Out,
    card: Card,
    asking: Asking,
    kind: Kind,
    saved: Saved,
}

/// What can be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Anything.
    Open,
    /// This call alone.
    Exact,
    /// Whether to do again what may have happened.
    Again,
}

/// What came of a person's wish to save an answer.
enum Wish {
    Saved(Entry),
    Dropped(String),
}

impl Dialog {
    pub(super) fn new(out: Out, card: Card, pending: &Pending, saved: Saved) -> Dialog {
        let kind = match (pending.is_in_doubt(), pending.is_exact()) {
            (true, _) => Kind::Again,
            (false, true) => Kind::Exact,
            (false, false) => Kind::Open,
        };
        Dialog { out, card, asking: Asking::of(pending.call()), kind, saved }
    }

    /// Asks until there is an answer. Everything is shown before any answer counts, and what was
    /// typed before there was anything to see is none.
    pub(super) fn hold(self) -> Answer {
        let screen = Screen::of_stderr();
        let pages = screen.pages(&self.card.text(screen.columns));
        if pages.len() > PAGES_MAX {
            let why = format!(
                "its card has {} pages, and nobody is asked to read more than {PAGES_MAX}",
                pages.len()
            );
            self.out.prompt(&format!("{}\n  {why}: not allowed\n", pages[0]));
            return Answer::Deny(why);
        }
        let last = pages.len() - 1;
        for (at, page) in pages.iter().enumerate() {
            self.out.prompt(&format!("{page}\n"));
            if at == 0 {
                forget_typed();
            }
            if at < last {
                let more = format!("page {} of {}: Enter for the rest, else no ", at + 1, last + 1);
                self.out.prompt(&paint(FAINT, format!("  {more}")));
                match line() {
                    Some(text) if text.is_empty() => {}
                    Some(_) | None => return unseen(),
                }
            }
        }
        for _ in 0..TRIES_MAX {
            self.out.prompt(self.kind.question());
            let Some(said) = line() else { return no() };
            let wish = match (said.as_str(), self.kind) {
                ("y" | "Y" | "yes", _) => return Answer::Once,
                ("r" | "R" | "run", Kind::Open) => return Answer::Run,
                ("a" | "A" | "always", Kind::Open) => self.save(Pattern::new()),
                ("p" | "P" | "pattern", Kind::Open) => self.save_pattern(),
                ("" | "n" | "N" | "no", _) => return no(),
                (why, _) => return Answer::Deny(format!("the user said no: {why}")),
            };
            match wish {
                Wish::Saved(entry) => {
                    let until = when::rfc3339(entry.expires_us);
                    return Answer::Saved(format!("{}, until {until}", entry.name));
                }
                Wish::Dropped(why) => self.out.prompt(&format!("  not saved: {why}\n")),
            }
        }
        no()
    }

    /// Lets the person say which arguments may be others, and saves that.
    fn save_pattern(&self) -> Wish {
        let offered = widened(&self.asking);
        let shown: Vec<String> =
            offered.iter().map(|(name, glob)| format!("{name}={glob}")).collect();
        if !members(&self.asking.args).iter().any(|(_, value)| text_of(value).is_some()) {
            return Wish::Dropped("no argument of this call is a text".to_owned());
        }
        self.out.prompt(&format!(
            "  which texts may be others? NAME=GLOB, several with blanks between them; \
             all else must be equal\n  pattern [{}] ",
            escape::line(&shown.join(" "))
        ));
        match line() {
            None => Wish::Dropped("nothing was said".to_owned()),
            Some(text) if text.is_empty() && shown.is_empty() => {
                Wish::Dropped("no argument was named".to_owned())
            }
            Some(text) if text.is_empty() => self.save(offered),
            Some(text) => match pattern(text.split_whitespace()) {
                Ok(pattern) => self.save(pattern),
                Err(why) => Wish::Dropped(why),
            },
        }
    }

    /// Shows what would be saved, for whom and how long, and saves it once that is agreed.
    fn save(&self, pattern: Pattern) -> Wish {
        let mut span = LIFETIME_DEFAULT;
        for _ in 0..TRIES_MAX {
            let entry = match self.saved.draft(&self.asking, &pattern, span) {
                Ok(entry) => entry,
                Err(problem) => return Wish::Dropped(told(&problem)),
            };
            self.out.prompt(&format!(
                "  saves   {}\n  scope   this project, {}, in every run\n  until   {}\n  \
                 save it? y, or how long instead, such as 8h or 7d [y/N] ",
                entry.scope(),
                escape::line(&self.saved.project),
                when::rfc3339(entry.expires_us),
            ));
            match line().as_deref() {
                Some("y" | "Y" | "yes") => {
                    return match self.saved.save(entry.clone()) {
                        Ok(()) => Wish::Saved(entry),
                        Err(problem) => Wish::Dropped(told(&problem)),
                    };
                }
                Some(text) => match lifetime(text) {
                    Ok(other) => span = other,
                    Err(_) => return Wish::Dropped("nobody agreed".to_owned()),
                },
                None => return Wish::Dropped("nobody agreed".to_owned()),
            }
        }
        Wish::Dropped("nobody agreed".to_owned())
    }
}

impl Kind {
    fn question(self) -> &'static str {
        match self {
            Kind::Open => {
                "  allow it? y: once · r: what this rule asks of this tool, this run · \
                 a: exactly this, always · p: a pattern, always\n  \
                 anything else is no, and the model reads it [y/N] "
            }
            Kind::Exact => {
                "  allow exactly this? y: once; anything else is no, and the model reads it [y/N] "
            }
            Kind::Again => "  do it again? y; anything else is no [y/N] ",
        }
    }
}

/// The paths among the arguments, each as wide as the folder that it is in.
fn widened(asking: &Asking) -> Pattern {
    let members = members(&asking.args).into_iter();
    let texts = members.filter_map(|(name, value)| Some((name, text_of(&value)?)));
    let paths = texts.filter(|(name, _)| name == "path" || name.ends_with("_path"));
    let wide = |text: String| match text.rsplit_once('/') {
        Some((folder, _)) => format!("{}/*", Glob::escape(folder)),
        None => "*".to_owned(),
    };
    paths.map(|(name, text)| (name, wide(text))).collect()
}

/// Reads `NAME=GLOB`s.
fn pattern<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<Pattern, String> {
    let mut pattern = Pattern::new();
    for pair in pairs {
        match pair.split_once('=') {
            Some((name, glob)) if !name.is_empty() && !glob.is_empty() => {
                pattern.insert(name.to_owned(), glob.to_owned());
            }
            Some(_) | None => return Err(format!("found `{pair}`, expected `NAME=GLOB`")),
        }
    }
    Ok(pattern)
}

/// What somebody typed; nothing, where that cannot be read or is too long to be an answer.
fn line() -> Option<String> {
    let mut line = String::new();
    let mut stdin = io::stdin().lock();
    let read = stdin.by_ref().take(ANSWER_BYTES_MAX).read_line(&mut line);
    if line.len() as u64 == ANSWER_BYTES_MAX && !line.ends_with('\n') {
        // What is left of a long answer is no answer to the next question.
        let _rest = stdin.skip_until(b'\n');
        return None;
    }
    match read {
        // Who hangs up says nothing.
        Err(_) | Ok(0) => None,
        Ok(_) => Some(line.trim().to_owned()),
    }
}

/// Drops what was typed and not read. At a terminal nothing else is left over: it hands out a line
/// at a time.
fn forget_typed() {
    #[cfg(unix)]
    if io::stdin().is_terminal() {
        use rustix::termios::{QueueSelector, tcflush};
        // A terminal that cannot forget is asked all the same.
        let _ = tcflush(io::stdin(), QueueSelector::IFlush);
    }
}

fn told(problem: &Problem) -> String {
    escape::line(&problem.message).into_owned()
}

pub(super) fn no() -> Answer {
    Answer::Deny("the user said no".into())
}

fn unseen() -> Answer {
    Answer::Deny("the user said no before all of it was shown".into())
}

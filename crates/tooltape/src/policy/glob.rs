//! Globs: patterns of relative paths.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The most bytes of a glob.
pub const GLOB_BYTES_MAX: usize = 1024;
/// The most texts that the alternatives in a glob's braces make of it.
pub const GLOB_WAYS_MAX: usize = 64;

/// A pattern of relative paths: `*` and `?` stay within a folder, `**` crosses folders, `[ab]` and
/// `{a,b}` are alternatives, and a `\` takes the next character for itself.
///
/// It is matched in time linear in its length times that of the path, whatever both are.
///
/// ```
/// use tooltape::rule::Glob;
///
/// let glob: Glob = "src/**/*.{rs,toml}".parse().unwrap();
/// assert_eq!(glob.matches("./src/a/b.rs"), Some(true));
/// assert_eq!(glob.matches("tests/b.rs"), Some(false));
/// assert_eq!(glob.matches("src/../b.rs"), None, "no plain path");
/// assert!("src/[a".parse::<Glob>().is_err());
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct Glob {
    text: Box<str>,
    /// What is left once the braces are gone; one of them must match.
    ways: Vec<Vec<Part>>,
}

/// What stands between two slashes.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    /// A name without wildcards.
    Exactly(Box<str>),
    Like(Vec<Piece>),
    /// `**`: any number of folders.
    Folders,
    /// `**` at the end: all that is below.
    Below,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    One(char),
    Any,
    Many,
    /// One of these ranges, or none of them.
    Among {
        ranges: Vec<(char, char)>,
        is_negated: bool,
    },
}

/// Why a text is not a glob.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found glob `{glob}`, expected {expected}")]
pub struct GlobError {
    glob: String,
    expected: &'static str,
}

impl Glob {
    /// Whether it matches a path; nothing is said of what is no plain relative path: one that is
    /// absolute, or has a part `..` or a `\`.
    pub fn matches(&self, path: &str) -> Option<bool> {
        let path = plain(path)?;
        Some(self.ways.iter().any(|way| leads(way, path.clone())))
    }

    /// Whether all that it matches is below this path, as far as it names folders.
    pub(super) fn is_below(&self, path: &str) -> bool {
        let folder = path.split('/').filter(|part| *part != ".");
        self.ways.iter().any(|way| {
            let mut parts = way.iter();
            folder.clone().all(|name| match parts.next() {
                Some(Part::Exactly(named)) => **named == *name,
                Some(Part::Like(_) | Part::Folders | Part::Below) | None => false,
            })
        })
    }

    /// The text of a glob that matches this path and no other.
    pub fn escape(path: &str) -> String {
        let mut glob = String::with_capacity(path.len());
        for c in path.chars() {
            if matches!(c, '*' | '?' | '[' | ']' | '{' | '}' | ',' | '!' | '\\') {
                glob.push('\\');
            }
            glob.push(c);
        }
        glob
    }

    /// Whether some plain relative path could match.
    pub fn is_plain(&self) -> bool {
        let is_name = |part: &Part| match part {
            Part::Exactly(name) => !matches!(&**name, "" | "." | "..") && !name.contains('\\'),
            Part::Like(pieces) => !pieces.contains(&Piece::One('\\')),
            Part::Folders | Part::Below => true,
        };
        self.ways.iter().any(|way| way.iter().all(is_name))
    }
}

/// The parts of a relative path without detours; `None` where it is not one.
fn plain(path: &str) -> Option<impl Iterator<Item = &str> + Clone> {
    let is_drive =
        path.as_bytes().get(1) == Some(&b':') && path.as_bytes()[0].is_ascii_alphabetic();
    // A backslash separates folders on some systems, and is a letter on others.
    if path.starts_with('/') || is_drive || path.contains('\\') {
        return None;
    }
    let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
    (!parts.clone().any(|part| part == "..")).then_some(parts)
}

/// Whether a path leads this way. Only the last `**` is ever tried again: whatever came before it
/// took as little as it could.
fn leads<'p>(way: &[Part], path: impl Iterator<Item = &'p str> + Clone) -> bool {
    let (mut at, mut path) = (0, path);
    let mut again = None;
    loop {
        let mut rest = path.clone();
        let fits = match (way.get(at), rest.next()) {
            (Some(Part::Folders), _) => {
                at += 1;
                again = Some((at, path.clone()));
                continue;
            }
            (Some(Part::Below), next) => return next.is_some(),
            (None, None) => return true,
            (Some(Part::Exactly(name)), Some(part)) => **name == *part,
            (Some(Part::Like(pieces)), Some(part)) => is_like(pieces, part),
            (None, Some(_)) | (Some(Part::Exactly(_) | Part::Like(_)), None) => false,
        };
        if fits {
            (at, path) = (at + 1, rest);
            continue;
        }
        let Some((after, mut from)) = again else { return false };
        if from.next().is_none() {
            return false;
        }
        (at, path) = (after, from.clone());
        again = Some((after, from));
    }
}

/// Whether a name is like this, by the same way.
fn is_like(pieces: &[Piece], name: &str) -> bool {
    let (mut at, mut name) = (0, name.chars());
    let mut again = None;
    loop {
        let mut rest = name.clone();
        let fits = match (pieces.get(at), rest.next()) {
            (Some(Piece::Many), _) => {
                at += 1;
                again = Some((at, name.clone()));
                continue;
            }
            (None, None) => return true,
            (Some(Piece::One(letter)), Some(found)) => *letter == found,
            (Some(Piece::Any), Some(_)) => true,
            (Some(Piece::Among { ranges, is_negated }), Some(found)) => {
                ranges.iter().any(|(from, to)| (from..=to).contains(&&found)) != *is_negated
            }
            (None, Some(_)) | (Some(Piece::One(_) | Piece::Any | Piece::Among { .. }), None) => {
                false
            }
        };
        if fits {
            (at, name) = (at + 1, rest);
            continue;
        }
        let Some((after, mut from)) = again else { return false };
        if from.next().is_none() {
            return false;
        }
        (at, name) = (after, from.clone());
        again = Some((after, from));
    }
}

impl FromStr for Glob {
    type Err = GlobError;

    fn from_str(text: &str) -> Result<Glob, GlobError> {
        let error = |expected| GlobError { glob: text.chars().take(80).collect(), expected };
        if text.is_empty() || text.len() > GLOB_BYTES_MAX {
            return Err(error("1 to 1024 bytes"));
        }
        let letters = letters(text).map_err(error)?;
        let ways = ways(&letters).map_err(error)?;
        let ways = ways.iter().map(|way| parts(way)).collect::<Result<_, _>>().map_err(error)?;
        Ok(Glob { text: text.into(), ways })
    }
}

/// A character of a glob: one that means something, or one that stands for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Letter {
    Special(char),
    Plain(char),
}

/// Takes the escapes and classes apart, in which nothing else means anything.
fn letters(text: &str) -> Result<Vec<Letter>, &'static str> {
    let mut letters = Vec::new();
    let mut chars = text.chars();
    let mut class_from = None;
    while let Some(c) = chars.next() {
        letters.push(match (c, class_from) {
            ('\\', None) => {
                Letter::Plain(chars.next().ok_or("a character behind the `\\` at its end")?)
            }
            ('[', None) => {
                class_from = Some(letters.len() + 1);
                Letter::Special(c)
            }
            ('!' | '^', Some(from)) if letters.len() == from => {
                class_from = Some(from + 1);
                Letter::Special('!')
            }
            // The first character of a class is one of it, whatever it is.
            (']', Some(from)) if letters.len() > from => {
                class_from = None;
                Letter::Special(c)
            }
            ('/', Some(_)) => return Err("no `/` between brackets"),
            ('-', Some(_)) => Letter::Special(c),
            (_, Some(_)) => Letter::Plain(c),
            ('*' | '?' | '{' | '}' | ',' | '/', None) => Letter::Special(c),
            (_, None) => Letter::Plain(c),
        });
    }
    if class_from.is_some() { Err("a `]` for each `[`") } else { Ok(letters) }
}

/// Writes the alternatives of braces out.
fn ways(letters: &[Letter]) -> Result<Vec<Vec<Letter>>, &'static str> {
    let open = |letter: &Letter| *letter == Letter::Special('{');
    let Some(from) = letters.iter().position(open) else {
        let is_stray = letters.contains(&Letter::Special('}'));
        return if is_stray { Err("a `{` for each `}`") } else { Ok(vec![letters.to_vec()]) };
    };
    let (mut depth, mut start, mut to) = (0, from + 1, None);
    let mut alternatives = Vec::new();
    for (at, letter) in letters.iter().enumerate().skip(from) {
        match letter {
            Letter::Special('{') => depth += 1,
            Letter::Special('}') => depth -= 1,
            Letter::Special(',') if depth == 1 => {
                alternatives.push(&letters[start..at]);
                start = at + 1;
            }
            Letter::Special(_) | Letter::Plain(_) => {}
        }
        if depth == 0 {
            alternatives.push(&letters[start..at]);
            to = Some(at);
            break;
        }
    }
    let to = to.ok_or("a `}` for each `{`")?;
    if letters[..from].contains(&Letter::Special('}')) {
        return Err("a `{` for each `}`");
    }
    let mut all = Vec::new();
    for alternative in alternatives {
        if alternative.is_empty() {
            return Err("something between the commas of braces");
        }
        all.extend(ways(&[&letters[..from], alternative, &letters[to + 1..]].concat())?);
        if all.len() > GLOB_WAYS_MAX {
            return Err("braces that stand for at most 64 globs");
        }
    }
    Ok(all)
}

fn parts(letters: &[Letter]) -> Result<Vec<Part>, &'static str> {
    const MANY: Letter = Letter::Special('*');
    let mut parts: Vec<Part> = Vec::new();
    for part in letters.split(|letter| *letter == Letter::Special('/')) {
        match part {
            [MANY, MANY] if parts.last() == Some(&Part::Folders) => {}
            [MANY, MANY] => parts.push(Part::Folders),
            part => parts.push(named(part)?),
        }
    }
    // `a/**` is what is below `a`, and `**` is everything.
    if parts.len() > 1
        && let Some(last @ Part::Folders) = parts.last_mut()
    {
        *last = Part::Below;
    }
    Ok(parts)
}

fn named(letters: &[Letter]) -> Result<Part, &'static str> {
    let mut pieces = Vec::new();
    let mut letters = letters.iter().copied();
    while let Some(letter) = letters.next() {
        pieces.push(match letter {
            Letter::Special('*') if pieces.last() == Some(&Piece::Many) => continue,
            Letter::Special('*') => Piece::Many,
            Letter::Special('?') => Piece::Any,
            Letter::Special('[') => {
                let end = |letter: &Letter| *letter != Letter::Special(']');
                among(&letters.by_ref().take_while(end).collect::<Vec<_>>())?
            }
            Letter::Special(c) | Letter::Plain(c) => Piece::One(c),
        });
    }
    let plain = |piece: &Piece| if let Piece::One(c) = piece { Some(*c) } else { None };
    Ok(match pieces.iter().map(plain).collect::<Option<String>>() {
        Some(name) => Part::Exactly(name.into()),
        None => Part::Like(pieces),
    })
}

/// What stands between brackets.
fn among(letters: &[Letter]) -> Result<Piece, &'static str> {
    let is_negated = letters.first() == Some(&Letter::Special('!'));
    let text = |letter: &Letter| match *letter {
        Letter::Special(c) | Letter::Plain(c) => c,
    };
    let letters = &letters[usize::from(is_negated)..];
    let mut ranges = Vec::new();
    let mut at = 0;
    while let Some(from) = letters.get(at).map(text) {
        // A `-` that stands first or last is one.
        let to = match (letters.get(at + 1), letters.get(at + 2)) {
            (Some(Letter::Special('-')), Some(to)) => {
                at += 2;
                text(to)
            }
            (_, _) => from,
        };
        if from > to {
            return Err("ranges between brackets that begin before they end");
        }
        ranges.push((from, to));
        at += 1;
    }
    Ok(Piece::Among { ranges, is_negated })
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}`", self.text)
    }
}

impl Serialize for Glob {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

//! What a call needs to be allowed, as its tool declares it.

use crate::canon::{Node, Peek};
use crate::right::{FileScope, Right, RightError};

/// One capability that a tool declares: a right, or one with arguments in it.
///
/// In `fs:write:{path}`, `{path}` stands for the top-level argument `path`, so that a call needs no
/// more than what it is about. Where that is no text, or no path, the call needs all files below
/// the same root; elsewhere there is no such right.
#[derive(Clone, Debug)]
pub(crate) enum Requirement {
    Fixed(Right),
    Files(Files),
    Filled(Box<str>),
    /// Nobody holds what is no right.
    Never(RightError),
}

/// The right to files whose path has arguments in it.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    path: Box<str>,
    /// The right to all files below the root.
    whole: Right,
}

impl Requirement {
    pub(crate) fn read(text: &str) -> Requirement {
        if !text.contains('{') {
            return text.parse().map_or_else(Requirement::Never, Requirement::Fixed);
        }
        let files = ["fs:read:", "fs:write:"];
        let files = files.iter().find_map(|domain| Some((domain, text.strip_prefix(domain)?)));
        let Some((domain, scope)) = files else { return Requirement::Filled(text.into()) };
        // The root is the tool's, whatever the model writes.
        let root = match scope.split_once('/') {
            Some((root, _)) if root.starts_with('@') => &scope[..=root.len()],
            Some(_) | None => "",
        };
        match format!("{domain}{root}.").parse() {
            Ok(whole) => Requirement::Files(Files { path: scope[root.len()..].into(), whole }),
            Err(err) => Requirement::Never(err),
        }
    }

    /// What a call with these arguments needs, or why nobody holds that.
    pub(crate) fn of(&self, args: &Peek<'_>) -> Result<Right, RightError> {
        match self {
            Requirement::Fixed(right) => Ok(right.clone()),
            Requirement::Never(err) => Err(err.clone()),
            Requirement::Files(files) => Ok(files.of(args.root())),
            Requirement::Filled(text) => match args.root().and_then(|args| fill(text, args)) {
                Some(filled) => filled.parse(),
                None => Err(RightError::Form { right: text.to_string() }),
            },
        }
    }
}

impl Requirement {
    /// Whether it is a right to spend money.
    pub(crate) fn is_spending(&self) -> bool {
        match self {
            Requirement::Fixed(right) => matches!(right, Right::Spend(_)),
            Requirement::Filled(text) => text.starts_with("spend:"),
            Requirement::Files(_) | Requirement::Never(_) => false,
        }
    }
}

impl Files {
    fn of(&self, args: Option<Node<'_>>) -> Right {
        let path = args.and_then(|args| fill(&self.path, args));
        let path = path.filter(|path| !path.starts_with('/'));
        // `./a` and `a//b` are spellings of `a` and `a/b`.
        let parts = |path: String| {
            let parts = path.split('/').filter(|part| !matches!(*part, "" | "."));
            let plain: Vec<&str> = parts.collect();
            if plain.is_empty() { ".".to_owned() } else { plain.join("/") }
        };
        let Some(Ok(path)) = path.map(parts).map(|path| path.parse()) else {
            return self.whole.clone();
        };
        match &self.whole {
            Right::FsRead(scope) => Right::FsRead(FileScope { root: scope.root.clone(), path }),
            Right::FsWrite(scope) => Right::FsWrite(FileScope { root: scope.root.clone(), path }),
            other => other.clone(),
        }
    }
}

/// The text with arguments in their places; nothing, where one of them is no text and no number.
fn fill(text: &str, args: Node<'_>) -> Option<String> {
    let (mut filled, mut rest) = (String::new(), text);
    while let Some((before, behind)) = rest.split_once('{') {
        let (name, after) = behind.split_once('}')?;
        filled.push_str(before);
        let argument = args.get(name)?;
        match argument.number_text() {
            Some(number) => filled.push_str(number),
            None => filled.push_str(&argument.as_str()?),
        }
        rest = after;
    }
    filled.push_str(rest);
    Some(filled)
}

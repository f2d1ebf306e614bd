//! What a call needs to be allowed, as its tool declares it.

use std::{iter, option, vec};

use crate::canon::{Kind, Node, Peek};
use crate::right::{FileScope, Method, NetScope, Right, RightError, Site};

/// One capability that a tool declares: a right, or one with arguments in it.
///
/// In `fs:write:{path}`, `{path}` stands for the top-level argument `path`, so that a call needs no
/// more than what it is about; where that is a list of paths, it needs each. Where it is neither,
/// the call needs all files below the same root; elsewhere there is no such right. In
/// `net:get:{url}`, an argument that is an address stands for the host and the port that it leads
/// to.
#[derive(Clone, Debug)]
pub(crate) enum Requirement {
    Fixed(Right),
    Files(Files),
    Filled(Box<str>),
    Site(Address),
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

/// The right to ask the host that an argument leads to.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    method: Method,
    argument: Box<str>,
}

/// The rights that one capability comes to: nearly always a single one.
pub(crate) type Needed = iter::Chain<option::IntoIter<Right>, vec::IntoIter<Right>>;

fn one(right: Right) -> Needed {
    Some(right).into_iter().chain(Vec::new())
}

impl Requirement {
    pub(crate) fn read(text: &str) -> Requirement {
        if !text.contains('{') {
            return text.parse().map_or_else(Requirement::Never, Requirement::Fixed);
        }
        if let Some(address) = Address::read(text) {
            return Requirement::Site(address);
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
    pub(crate) fn of(&self, args: &Peek<'_>) -> Result<Needed, RightError> {
        match self {
            Requirement::Fixed(right) => Ok(one(right.clone())),
            Requirement::Never(err) => Err(err.clone()),
            Requirement::Files(files) => Ok(files.of(args.root())),
            Requirement::Site(address) => address.of(args.root()).map(one),
            Requirement::Filled(text) => match args.root().and_then(|args| fill(text, args)) {
                Some(filled) => filled.parse().map(one),
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
            Requirement::Files(_) | Requirement::Site(_) | Requirement::Never(_) => false,
        }
    }
}

impl Address {
    /// Reads `net:METHOD:{argument}`.
    fn read(text: &str) -> Option<Address> {
        let (word, scope) = text.strip_prefix("net:")?.split_once(':')?;
        let argument = scope.strip_prefix('{')?.strip_suffix('}')?;
        let is_one = !argument.contains(['{', '}']);
        let method = Method::of_word(word).filter(|_| is_one)?;
        Some(Address { method, argument: argument.into() })
    }

    fn of(&self, args: Option<Node<'_>>) -> Result<Right, RightError> {
        let Address { method, argument } = self;
        let right = || format!("net:{}:{{{argument}}}", method.word());
        let text = args.and_then(|args| Some(args.get(argument)?.as_str()?.into_owned()));
        let text = text.ok_or_else(|| RightError::Form { right: right() })?;
        if !text.contains("://") {
            return format!("net:{}:{text}", method.word()).parse();
        }
        let nowhere = |source| RightError::Scope { right: right(), source };
        let Site { host, port, .. } = Site::of(&text).map_err(nowhere)?;
        Ok(Right::Net(NetScope { hosts: host.into(), port, method: *method }))
    }
}

impl Files {
    fn of(&self, args: Option<Node<'_>>) -> Needed {
        let listed = args.as_ref().and_then(|args| self.listed(args));
        match listed.filter(|paths| !paths.is_empty()) {
            Some(paths) => {
                let rights: Vec<Right> =
                    paths.into_iter().map(|path| self.at(Some(path))).collect();
                None.into_iter().chain(rights)
            }
            None => one(self.at(args.and_then(|args| fill(&self.path, args)))),
        }
    }

    /// The paths of a list that stands for all of the path.
    fn listed(&self, args: &Node<'_>) -> Option<Vec<String>> {
        let name = self.path.strip_prefix('{')?.strip_suffix('}')?;
        let list = args.get(name).filter(|list| list.kind() == Kind::Array)?;
        list.items().map(|item| item.as_str().map(|path| path.to_string())).collect()
    }

    /// The right to one path, or to all where it is none.
    fn at(&self, path: Option<String>) -> Right {
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

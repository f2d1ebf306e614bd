//! Property names that an API refuses, under names that it takes.

use std::collections::{BTreeMap, BTreeSet};

/// How long a property name may be where there is a limit.
const KEY_CHARS_MAX: usize = 64;

/// Which property names an API takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keys {
    /// All of them.
    Any,
    /// `[A-Za-z0-9_.-]`, 1 to 64.
    Dotted,
    /// `[A-Za-z_][A-Za-z0-9_]*`, up to 64.
    Identifiers,
}

impl Keys {
    /// Whether the API takes this name.
    pub(super) fn take(self, name: &str) -> bool {
        let allowed = name.chars().all(|character| self.has(character));
        match self {
            Keys::Any => true,
            Keys::Dotted => allowed && (1..=KEY_CHARS_MAX).contains(&name.len()),
            Keys::Identifiers => {
                allowed
                    && (1..=KEY_CHARS_MAX).contains(&name.len())
                    && !name.starts_with(|first: char| first.is_ascii_digit())
            }
        }
    }

    fn has(self, character: char) -> bool {
        match self {
            Keys::Any => true,
            Keys::Dotted => character.is_ascii_alphanumeric() || "_.-".contains(character),
            Keys::Identifiers => character.is_ascii_alphanumeric() || character == '_',
        }
    }

    /// A name that the API takes for each of these names; a name that it takes is its own.
    pub(super) fn aliases<'a>(
        self,
        names: impl Iterator<Item = &'a String> + Clone,
    ) -> BTreeMap<String, String> {
        let own = names.clone().filter(|name| self.take(name));
        let mut aliases =
            Aliases { keys: self, taken: own.clone().cloned().collect(), last: BTreeMap::new() };
        let others = names.filter(|name| !self.take(name));
        let made = others.map(|name| (name.clone(), aliases.alias(name)));
        let made = made.collect::<Vec<_>>();
        own.map(|name| (name.clone(), name.clone())).chain(made).collect()
    }
}

/// Names that are given, none of them twice.
pub(super) struct Aliases {
    pub(super) keys: Keys,
    pub(super) taken: BTreeSet<String>,
    /// The last number that was tried for each name.
    pub(super) last: BTreeMap<String, usize>,
}

impl Aliases {
    /// The name with `_` for what the API refuses, numbered until it is not taken.
    pub(super) fn alias(&mut self, name: &str) -> String {
        let mut stem = String::new();
        if name.is_empty() || !self.keys.take(&name[..name.ceil_char_boundary(1)]) {
            stem.push('_');
        }
        stem.extend(name.chars().map(|letter| if self.keys.has(letter) { letter } else { '_' }));
        stem.truncate(KEY_CHARS_MAX);
        let last = self.last.entry(stem.clone()).or_default();
        loop {
            *last += 1;
            let number = if *last == 1 { String::new() } else { format!("_{last}") };
            let room = stem.len().min(KEY_CHARS_MAX - number.len());
            let alias = format!("{}{number}", &stem[..room]);
            if self.taken.insert(alias.clone()) {
                return alias;
            }
        }
    }
}

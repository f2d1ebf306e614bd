//! Labels: whom a text may come from, and whom it is not for.

mod kept;

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

pub use kept::{LABELLED_MAX, Labels};
use serde::{Deserialize, Serialize};

/// The most sources, and the most secrets, that a label names one by one.
pub const LABEL_NAMES_MAX: usize = 32;
/// The longest name in a label, in bytes.
pub const LABEL_NAME_BYTES_MAX: usize = 128;
/// What a label names where it would name more than it may.
const OTHERS: &str = "others";

/// Whom a text may come from, and whom it is not for.
///
/// A label says two things. *Integrity*: a text is trusted, or somebody whom nobody vouches for may
/// have had a hand in it, and the label names where. *Confidentiality*: a text is public, or
/// internal, or some secret can be told from it, and the label names which.
///
/// The label of several texts is the [join](Label::join) of theirs: it names whatever one of them
/// names. No join makes a text more trusted, or less secret. The least label, and the default, is
/// that of a text that is trusted and public.
///
/// ```
/// use tooltape::Label;
///
/// let page = Label::untrusted("web_fetch");
/// let payroll = Label::secret("payroll");
/// let both = page.clone().join(&payroll);
/// assert_eq!(both.to_string(), "untrusted (web_fetch), secret (payroll)");
/// assert!(page.flows_to(&both) && !both.flows_to(&page));
/// assert!(Label::default().is_trusted());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Label {
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    untrusted: Names,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    internal: bool,
    #[serde(default, skip_serializing_if = "Names::is_empty")]
    secret: Names,
}

impl Label {
    /// Anybody may have had a hand in it who has one in this source.
    pub fn untrusted(source: impl AsRef<str>) -> Label {
        Label { untrusted: Names::one(source.as_ref()), ..Label::default() }
    }

    /// It is not for everybody.
    pub fn internal() -> Label {
        Label { internal: true, ..Label::default() }
    }

    /// The secret of this name can be told from it.
    pub fn secret(name: impl AsRef<str>) -> Label {
        Label { secret: Names::one(name.as_ref()), ..Label::default() }
    }

    /// All names in it.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.untrusted.iter().chain(self.secret.iter())
    }

    /// The same label, without the names that must not be written down.
    pub(crate) fn hiding(&self, hides: impl Fn(&str) -> bool) -> Label {
        let names = |names: &Names| {
            let shown = |name: &Arc<str>| if hides(name) { HIDDEN.into() } else { name.clone() };
            Names(names.0.iter().map(shown).collect())
        };
        let (untrusted, secret) = (names(&self.untrusted), names(&self.secret));
        Label { untrusted, secret, internal: self.internal }
    }

    /// The least label that says what both say.
    #[must_use]
    pub fn join(mut self, other: &Label) -> Label {
        self.untrusted.extend(&other.untrusted);
        self.internal |= other.internal;
        self.secret.extend(&other.secret);
        self
    }

    /// Whether all that this one says, the other says too.
    pub fn flows_to(&self, other: &Label) -> bool {
        self.untrusted.within(&other.untrusted)
            && (!self.internal || other.internal)
            && self.secret.within(&other.secret)
    }

    /// Whether nobody had a hand in it whom nobody vouches for.
    pub fn is_trusted(&self) -> bool {
        self.untrusted.is_empty()
    }

    /// Whether it is for everybody.
    pub fn is_public(&self) -> bool {
        !self.internal && self.secret.is_empty()
    }

    /// Whether it is not for everybody, though no secret can be told from it.
    pub fn is_internal(&self) -> bool {
        self.internal && self.secret.is_empty()
    }

    /// Whether it says nothing: trusted, and public.
    pub fn is_plain(&self) -> bool {
        self.is_trusted() && self.is_public()
    }

    /// Where somebody may have had a hand in it, in alphabetical order.
    pub fn sources(&self) -> impl Iterator<Item = &str> {
        self.untrusted.iter()
    }

    /// The secrets that can be told from it, in alphabetical order.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        self.secret.iter()
    }

    /// The same confidentiality of a text that somebody vouches for.
    pub(crate) fn endorsed(&self) -> Label {
        Label { untrusted: Names::default(), ..self.clone() }
    }

    /// The label, where it says anything.
    pub(crate) fn kept(self) -> Option<Arc<Label>> {
        (!self.is_plain()).then(|| Arc::new(self))
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_trusted() {
            true => f.write_str("trusted")?,
            false => write!(f, "untrusted ({})", self.untrusted)?,
        }
        match (self.secret.is_empty(), self.internal) {
            (false, _) => write!(f, ", secret ({})", self.secret),
            (true, true) => f.write_str(", internal"),
            (true, false) => f.write_str(", public"),
        }
    }
}

/// The join of two labels of which either may say nothing.
pub(crate) fn joined(one: Option<&Arc<Label>>, other: Option<&Arc<Label>>) -> Option<Arc<Label>> {
    match (one, other) {
        (None, it) | (it, None) => it.cloned(),
        (Some(one), Some(other)) if other.flows_to(one) => Some(one.clone()),
        (Some(one), Some(other)) => Some(Arc::new(Label::clone(one).join(other))),
    }
}

/// What a label says that may say nothing.
pub(crate) fn said(label: Option<&Arc<Label>>) -> &Label {
    static PLAIN: Label = Label {
        untrusted: Names(BTreeSet::new()),
        internal: false,
        secret: Names(BTreeSet::new()),
    };
    label.map_or(&PLAIN, |label| label)
}

/// The name of what must not be named.
const HIDDEN: &str = "[redacted]";

/// Names, as many as a label may have: more of them have one name together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(from = "BTreeSet<Arc<str>>")]
struct Names(BTreeSet<Arc<str>>);

impl Names {
    fn one(name: &str) -> Names {
        let end = name.floor_char_boundary(LABEL_NAME_BYTES_MAX.min(name.len()));
        Names(BTreeSet::from([name[..end].into()]))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn iter(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|name| &**name)
    }

    /// Adds names. Which ones are named one by one never depends on the order of adding.
    fn extend(&mut self, names: &Names) {
        self.0.extend(names.0.iter().cloned());
        self.bound();
    }

    fn bound(&mut self) {
        let has_others = self.0.contains(OTHERS);
        if self.0.len() <= LABEL_NAMES_MAX && !has_others {
            return;
        }
        let named = self.0.iter().filter(|name| &***name != OTHERS).take(LABEL_NAMES_MAX - 1);
        self.0 = named.cloned().chain([OTHERS.into()]).collect();
    }

    /// Whether adding these to those adds nothing.
    fn within(&self, names: &Names) -> bool {
        if self.0.is_subset(&names.0) {
            return true;
        }
        let mut both = names.clone();
        both.extend(self);
        both == *names
    }
}

impl From<BTreeSet<Arc<str>>> for Names {
    fn from(names: BTreeSet<Arc<str>>) -> Names {
        let mut names = Names(names);
        names.bound();
        names
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, name) in self.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            f.write_str(name)?;
        }
        Ok(())
    }
}

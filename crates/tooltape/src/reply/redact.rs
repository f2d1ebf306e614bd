//! Secrets that must not be shown, and every form in which they are looked for.

mod discreet;
mod forms;
mod said;
mod stream;

use std::borrow::Cow;
use std::iter;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::Input;
use aho_corasick::automaton::Automaton as _;
use aho_corasick::nfa::contiguous::NFA;
pub use discreet::SECRET_PART_BYTES_MIN;
use forms::{FORM_BYTES_MAX, Form};
use serde_json::Value;
pub use stream::{RedactedBytes, RedactedText};
use zeroize::Zeroizing;

use crate::artifact::{ARTIFACT_READ_BYTES_MAX, Veil};
use crate::builtin::PAGE_BYTES_MAX;
use crate::canon::{Canon, Doc, Limits};
use crate::grant::REDACTED;

/// The shortest secret that is looked for, in bytes: shorter ones would be found everywhere.
pub const SECRET_BYTES_MIN: usize = 6;
/// The most bytes of all secrets together.
pub const SECRETS_BYTES_MAX: usize = 64 << 10;

// What stands around a page must be readable with it, whatever the secrets are.
const _: () = assert!(
    (2 * FORM_BYTES_MAX * SECRETS_BYTES_MAX) as u64 + PAGE_BYTES_MAX <= ARTIFACT_READ_BYTES_MAX
);

/// Finds secrets in what is about to leave, and takes them out.
///
/// A secret is found as it is, reversed, in hexadecimal, in base64 at any place of a longer text,
/// as a list of bytes, and with the escapes of JSON, Rust, URLs and HTML; of one with many lines,
/// each longer line is. What is encrypted, compressed or spread over the text cannot be found.
///
/// ```
/// use tooltape::Redactor;
///
/// let redactor = Redactor::new(["correct horse"])?;
/// assert_eq!(redactor.redact("say correct horse!"), "say [redacted]!");
/// assert_eq!(redactor.redact("?q=correct%20horse"), "?q=[redacted]");
/// # Ok::<(), tooltape::RedactError>(())
/// ```
#[derive(Clone, Default)]
pub struct Redactor(Option<Arc<Secrets>>);

struct Secrets {
    secrets: Vec<Form>,
    forms: NFA,
}

/// Why secrets cannot be looked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedactError {
    /// One is too short.
    #[error("a secret has {bytes} bytes, expected at least {SECRET_BYTES_MIN} to look for it")]
    TooShort {
        /// How many it has.
        bytes: usize,
    },
    /// There are too many.
    #[error("all secrets have {bytes} bytes together, expected at most {SECRETS_BYTES_MAX}")]
    TooMany {
        /// How many they have.
        bytes: usize,
    },
}

impl Redactor {
    /// Looks for these secrets.
    pub fn new<S: AsRef<[u8]>>(
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Redactor, RedactError> {
        let secrets = secrets.into_iter().map(|it| Zeroizing::new(it.as_ref().to_vec()));
        let secrets: Vec<_> = secrets.collect();
        match secrets.iter().map(|secret| secret.len()).find(|bytes| *bytes < SECRET_BYTES_MIN) {
            Some(bytes) => Err(RedactError::TooShort { bytes }),
            None => Redactor::of(secrets),
        }
    }

    /// Looks for more secrets. Those too short to be looked for are passed over.
    pub(crate) fn and<S: AsRef<[u8]>>(
        &self,
        secrets: impl IntoIterator<Item = S>,
    ) -> Result<Redactor, RedactError> {
        let mut all = self.0.as_ref().map_or_else(Vec::new, |own| own.secrets.clone());
        let own = all.len();
        for secret in secrets {
            let secret = secret.as_ref();
            let is_known = all.iter().any(|known| known.as_slice() == secret);
            if secret.len() >= SECRET_BYTES_MIN && !is_known {
                all.push(Zeroizing::new(secret.to_vec()));
            }
        }
        if all.len() == own { Ok(self.clone()) } else { Redactor::of(all) }
    }

    fn of(secrets: Vec<Form>) -> Result<Redactor, RedactError> {
        let bytes = secrets.iter().map(|secret| secret.len()).sum();
        if bytes > SECRETS_BYTES_MAX {
            return Err(RedactError::TooMany { bytes });
        }
        if secrets.is_empty() {
            return Ok(Redactor(None));
        }
        let forms = NFA::new(forms::all(&secrets)).expect("so few bytes fit any automaton");
        Ok(Redactor(Some(Arc::new(Secrets { secrets, forms }))))
    }

    /// Whether there is nothing to look for.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a text holds a secret.
    pub fn finds(&self, text: &str) -> bool {
        self.finds_in(text.as_bytes())
    }

    /// Whether bytes hold a secret.
    pub fn finds_in(&self, bytes: &[u8]) -> bool {
        let Some(secrets) = &self.0 else { return false };
        let found = secrets.forms.try_find(&Input::new(bytes).earliest(true));
        found.expect("it looks for secrets wherever they begin").is_some()
    }

    /// Whether a JSON document holds a secret, as it is written or in what its texts say.
    pub fn finds_in_json(&self, json: &str) -> bool {
        if self.is_idle() || self.finds(json) {
            return !self.is_idle();
        }
        // Where nothing is escaped, texts are what is written.
        let escaped = tokens(json).filter(|token| token.starts_with('"') && token.contains('\\'));
        let mut texts = escaped.filter_map(|token| serde_json::from_str::<String>(token).ok());
        texts.any(|text| self.finds(&text))
    }

    /// The text with `[redacted]` in place of every secret. Linear in the text.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let hidden = self.places(text.as_bytes(), |found| {
            text.floor_char_boundary(found.start)..text.ceil_char_boundary(found.end)
        });
        match hidden.is_empty() {
            true => Cow::Borrowed(text),
            false => Cow::Owned(without(text, hidden)),
        }
    }

    /// The bytes with `[redacted]` in place of every secret. Linear in the bytes.
    pub fn redact_bytes<'b>(&self, bytes: &'b [u8]) -> Cow<'b, [u8]> {
        let hidden = self.places(bytes, |found| found);
        if hidden.is_empty() {
            return Cow::Borrowed(bytes);
        }
        let (mut redacted, mut from) = (Vec::new(), 0);
        for Range { start, end } in hidden {
            redacted.extend_from_slice(&bytes[from..start]);
            redacted.extend_from_slice(REDACTED.as_bytes());
            from = end;
        }
        redacted.extend_from_slice(&bytes[from..]);
        Cow::Owned(redacted)
    }

    /// The JSON document with `[redacted]` in place of every secret in its texts, keys and
    /// numbers. Where no such document is left, it is that text alone.
    pub fn redact_json<'t>(&self, json: &'t str) -> Cow<'t, str> {
        if !self.finds_in_json(json) {
            return Cow::Borrowed(json);
        }
        let redacted = self.json(json, |text| self.found(text));
        match !self.finds_in_json(&redacted) && serde_json::from_str::<Value>(&redacted).is_ok() {
            true => Cow::Owned(redacted),
            false => Cow::Owned(Canon::string(REDACTED).as_str().to_owned()),
        }
    }

    /// Where secrets are, each place widened so; places that overlap or touch are one.
    fn places(
        &self,
        bytes: &[u8],
        widen: impl Fn(Range<usize>) -> Range<usize>,
    ) -> Vec<Range<usize>> {
        let Some(secrets) = &self.0 else { return Vec::new() };
        // Matches come by their ends.
        let found = secrets.forms.try_find_overlapping_iter(Input::new(bytes));
        let found = found.expect("it looks for secrets wherever they begin");
        found.map(|found| widen(found.range())).fold(Vec::new(), joined)
    }

    /// A text that is changed only where it must be.
    pub(super) fn text(&self, text: String) -> String {
        match self.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted,
        }
    }

    /// The value without secrets, where it has any.
    pub(super) fn canon(&self, value: &Canon) -> Option<Canon> {
        if !self.finds_in_json(value.as_str()) {
            return None;
        }
        Some(self.canonical(&self.json(value.as_str(), |text| self.found(text))))
    }

    /// The value whose texts were changed so, and without secrets.
    fn canon_with(&self, value: &Canon, change: impl FnMut(&str) -> Option<String>) -> Canon {
        let changed = self.json(value.as_str(), change);
        match changed == value.as_str() && !self.finds_in_json(&changed) {
            true => value.clone(),
            false => self.canonical(&changed),
        }
    }

    /// Two keys may have become one, or a secret may go from one string to the next.
    fn canonical(&self, redacted: &str) -> Canon {
        let doc = Doc::read(redacted, &Limits::OWN).ok();
        let canon =
            doc.map(|doc| doc.canonical()).filter(|canon| !self.finds_in_json(canon.as_str()));
        canon.unwrap_or_else(|| Canon::string(REDACTED))
    }

    /// Details or metadata without secrets, where they have any.
    pub(crate) fn value(&self, value: &Value) -> Option<Value> {
        let text = value.to_string();
        if !self.finds_in_json(&text) {
            return None;
        }
        let redacted = self.json(&text, |text| self.found(text));
        let value = (!self.finds_in_json(&redacted)).then(|| serde_json::from_str(&redacted).ok());
        Some(value.flatten().unwrap_or_else(|| Value::String(REDACTED.to_owned())))
    }

    /// A text without secrets, where it has any.
    fn found(&self, text: &str) -> Option<String> {
        match self.redact(text) {
            Cow::Borrowed(_) => None,
            Cow::Owned(redacted) => Some(redacted),
        }
    }

    /// JSON whose texts were changed so, and whose keys and numbers hold no secrets.
    fn json(&self, text: &str, mut change: impl FnMut(&str) -> Option<String>) -> String {
        let mut out = String::with_capacity(text.len());
        let mut tokens = tokens(text).peekable();
        while let Some(token) = tokens.next() {
            if !token.starts_with('"') {
                match self.finds(token) {
                    true => out.push_str(Canon::string(REDACTED).as_str()),
                    false => out.push_str(token),
                }
                continue;
            }
            let inside: String = serde_json::from_str(token).unwrap_or_default();
            // In a document without spaces, as ours are.
            let is_key = tokens.peek().is_some_and(|next| *next == ":");
            match if is_key { self.found(&inside) } else { change(&inside) } {
                Some(changed) => out.push_str(Canon::string(&changed).as_str()),
                None => out.push_str(token),
            }
        }
        out
    }
}

/// The tokens of a JSON text, with what stands between them.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    iter::from_fn(move || {
        let len = if rest.is_empty() { return None } else { token(rest) };
        let token;
        (token, rest) = rest.split_at(len);
        Some(token)
    })
}

/// Places with one more behind them; those that overlap or touch are one.
fn joined(mut places: Vec<Range<usize>>, mut place: Range<usize>) -> Vec<Range<usize>> {
    while let Some(before) = places.pop_if(|before| before.end >= place.start) {
        place.start = place.start.min(before.start);
        place.end = place.end.max(before.end);
    }
    places.push(place);
    places
}

/// A text with a mark in place of each of these.
fn without(text: &str, hidden: Vec<Range<usize>>) -> String {
    let (mut redacted, mut from) = (String::new(), 0);
    for Range { start, end } in hidden {
        redacted.push_str(&text[from..start]);
        redacted.push_str(REDACTED);
        from = end;
    }
    redacted.push_str(&text[from..]);
    redacted
}

/// How long the token is that a JSON text begins with.
fn token(text: &str) -> usize {
    let bytes = text.as_bytes();
    match bytes[0] {
        b'"' => {
            let mut at = 1;
            while at < bytes.len() && bytes[at] != b'"' {
                at += if bytes[at] == b'\\' { 2 } else { 1 };
            }
            (at + 1).min(bytes.len())
        }
        b'[' | b']' | b'{' | b'}' | b',' | b':' => 1,
        _ => text.find(['"', '[', ']', '{', '}', ',', ':']).unwrap_or(text.len()),
    }
}

impl Veil for Redactor {
    fn reach(&self) -> usize {
        self.0.as_ref().map_or(0, |secrets| secrets.forms.max_pattern_len() - 1)
    }

    fn hidden(&self, bytes: &[u8]) -> Vec<Range<usize>> {
        self.places(bytes, |found| found)
    }

    fn over(&self, bytes: Vec<u8>) -> Vec<u8> {
        let redacted = match str::from_utf8(&bytes) {
            // No character is cut.
            Ok(text) => self.found(text).map(String::into_bytes),
            Err(_) => match self.redact_bytes(&bytes) {
                Cow::Borrowed(_) => None,
                Cow::Owned(redacted) => Some(redacted),
            },
        };
        redacted.unwrap_or(bytes)
    }
}

//! Secrets that must not be shown, and every form in which they are looked for.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use serde_json::Value;
use zeroize::Zeroizing;

use crate::artifact::{ARTIFACT_READ_BYTES_MAX, Veil};
use crate::builtin::PAGE_BYTES_MAX;
use crate::canon::{Canon, Doc, Limits};
use crate::grant::{Note, Noted, REDACTED, Witness};
use crate::id::CallNo;

/// The shortest secret that is looked for, in bytes: shorter ones would be found everywhere.
pub const SECRET_BYTES_MIN: usize = 6;
/// The most bytes of all secrets together.
pub const SECRETS_BYTES_MAX: usize = 64 << 10;

/// The most bytes that a form of a secret has for each of its own: `\\u001f` stands for one.
const FORM_BYTES_MAX: usize = 7;
// What stands around a page must be readable with it, whatever the secrets are.
const _: () = assert!(
    (2 * FORM_BYTES_MAX * SECRETS_BYTES_MAX) as u64 + PAGE_BYTES_MAX <= ARTIFACT_READ_BYTES_MAX
);

/// Finds secrets in what is about to leave, and takes them out.
///
/// A secret is found as it is, reversed, in hexadecimal, in base64 at any place of a longer text,
/// and with the escapes of JSON, URLs and HTML. What is encrypted, compressed or spread over the
/// text cannot be found.
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
    secrets: Vec<Zeroizing<Vec<u8>>>,
    forms: AhoCorasick,
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
        let own = self.0.iter().flat_map(|own| own.secrets.iter().cloned());
        let more = secrets.into_iter().map(|it| Zeroizing::new(it.as_ref().to_vec()));
        Redactor::of(own.chain(more.filter(|it| it.len() >= SECRET_BYTES_MIN)).collect())
    }

    fn of(secrets: Vec<Zeroizing<Vec<u8>>>) -> Result<Redactor, RedactError> {
        let bytes = secrets.iter().map(|secret| secret.len()).sum();
        if bytes > SECRETS_BYTES_MAX {
            return Err(RedactError::TooMany { bytes });
        }
        if secrets.is_empty() {
            return Ok(Redactor(None));
        }
        let forms: BTreeSet<Vec<u8>> = secrets.iter().flat_map(|secret| forms(secret)).collect();
        let forms = AhoCorasick::new(forms).expect("so few bytes fit any automaton");
        Ok(Redactor(Some(Arc::new(Secrets { secrets, forms }))))
    }

    /// A witness that hears no secrets, in front of another one.
    pub(crate) fn before(&self, witness: Arc<dyn Witness>) -> Arc<dyn Witness> {
        match self.is_idle() {
            true => witness,
            false => Arc::new(Discreet { witness, redactor: self.clone() }),
        }
    }

    /// Whether there is nothing to look for.
    pub(crate) fn is_idle(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a text holds a secret.
    pub fn finds(&self, text: &str) -> bool {
        self.0.as_ref().is_some_and(|secrets| secrets.forms.is_match(text))
    }

    /// The text with `[redacted]` in place of every secret. Linear in the text.
    pub fn redact<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let hidden = self.places(text.as_bytes(), |found| {
            text.floor_char_boundary(found.start)..text.ceil_char_boundary(found.end)
        });
        if hidden.is_empty() {
            return Cow::Borrowed(text);
        }
        let (mut redacted, mut from) = (String::new(), 0);
        for Range { start, end } in hidden {
            redacted.push_str(&text[from..start]);
            redacted.push_str(REDACTED);
            from = end;
        }
        redacted.push_str(&text[from..]);
        Cow::Owned(redacted)
    }

    /// Where secrets are, each place widened so; places that overlap or touch are one.
    fn places(
        &self,
        bytes: &[u8],
        widen: impl Fn(Range<usize>) -> Range<usize>,
    ) -> Vec<Range<usize>> {
        let mut places: Vec<Range<usize>> = Vec::new();
        // Matches come by their ends.
        for found in self.0.iter().flat_map(|secrets| secrets.forms.find_overlapping_iter(bytes)) {
            let mut place = widen(found.range());
            while let Some(before) = places.pop_if(|before| before.end >= place.start) {
                place.start = place.start.min(before.start);
            }
            places.push(place);
        }
        places
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
        if !self.finds(value.as_str()) {
            return None;
        }
        let redacted = self.json(value.as_str());
        // Two keys may have become one, or a secret may go from one string to the next.
        let doc = Doc::read(&redacted, &Limits::OWN).ok();
        let canon = doc.map(|doc| doc.canonical()).filter(|canon| !self.finds(canon.as_str()));
        Some(canon.unwrap_or_else(|| Canon::string(REDACTED)))
    }

    /// Details or metadata without secrets, where they have any.
    pub(super) fn value(&self, value: &Value) -> Option<Value> {
        let text = value.to_string();
        if !self.finds(&text) {
            return None;
        }
        let redacted = self.json(&text);
        let value = (!self.finds(&redacted)).then(|| serde_json::from_str(&redacted).ok());
        Some(value.flatten().unwrap_or_else(|| Value::String(REDACTED.to_owned())))
    }

    /// JSON whose strings and numbers hold no secrets.
    fn json(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let len = token(rest);
            let token = &rest[..len];
            rest = &rest[len..];
            match first {
                '"' => {
                    let inside: String = serde_json::from_str(token).unwrap_or_default();
                    out.push_str(Canon::string(&self.redact(&inside)).as_str());
                }
                _ if self.finds(token) => out.push_str(Canon::string(REDACTED).as_str()),
                _ => out.push_str(token),
            }
        }
        out
    }
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
}

struct Discreet {
    witness: Arc<dyn Witness>,
    redactor: Redactor,
}

impl Witness for Discreet {
    fn note(&self, call: CallNo, note: Note) -> Noted {
        let clean = |value: Canon| self.redactor.canon(&value).unwrap_or(value);
        let note = match note {
            Note::Progress(text) => Note::Progress(self.redactor.text(text)),
            Note::Emitted { name, value } => Note::Emitted { name, value: clean(value) },
            Note::State { name, value } => Note::State { name, value: clean(value) },
            Note::Stored { store, key, wrote, value } => {
                let (key, value) = (self.redactor.text(key), value.map(clean));
                Note::Stored { store, key, wrote, value }
            }
            Note::Abandoned { .. } => note,
        };
        self.witness.note(call, note)
    }
}

/// Every form in which a secret is looked for.
fn forms(secret: &[u8]) -> Vec<Vec<u8>> {
    let hex: String = secret.iter().map(|byte| format!("{byte:02x}")).collect();
    let mut forms: Vec<Vec<u8>> = vec![
        secret.to_vec(),
        secret.iter().rev().copied().collect(),
        hex.to_uppercase().into_bytes(),
        hex.into_bytes(),
    ];
    forms.extend((0..3).flat_map(|before| base64_forms(secret, before)));
    forms.extend(url_forms(secret));
    if let Ok(text) = str::from_utf8(secret) {
        forms.push(text.chars().rev().collect::<String>().into_bytes());
        forms.extend(text_forms(text).map(String::into_bytes));
    }
    forms
}

/// The characters that base64 always has for a secret with so many bytes before it, modulo three.
fn base64_forms(secret: &[u8], before: usize) -> [Vec<u8>; 2] {
    let mut bytes = vec![0; before];
    bytes.extend_from_slice(secret);
    // The first and the last character may depend on what stands before and behind.
    let (first, last) = ((8 * before).div_ceil(6), 8 * bytes.len() / 6);
    let standard = STANDARD_NO_PAD.encode(&bytes);
    let url_safe = URL_SAFE_NO_PAD.encode(&bytes);
    [standard, url_safe].map(|text| text.as_bytes()[first..last].to_vec())
}

/// How the many makers of URLs write a secret: each leaves other characters as they are.
fn url_forms(secret: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let kept = ["-._~", "-._~!*'()", "-._~!*'();/?:@&=+$,#", "-._*", "-._~/", ""];
    let plain = move |byte: u8, kept: &str| {
        (byte.is_ascii_alphanumeric() && !kept.is_empty()) || kept.as_bytes().contains(&byte)
    };
    kept.into_iter().flat_map(move |kept| {
        [false, true].into_iter().flat_map(move |upper| {
            [Some(b'+'), None].into_iter().map(move |space| {
                let mut form = Vec::with_capacity(3 * secret.len());
                for byte in secret.iter().copied() {
                    match space {
                        Some(plus) if byte == b' ' => form.push(plus),
                        _ if plain(byte, kept) => form.push(byte),
                        _ if upper => form.extend(format!("%{byte:02X}").bytes()),
                        _ => form.extend(format!("%{byte:02x}").bytes()),
                    }
                }
                form
            })
        })
    })
}

/// A secret with the escapes of JSON, as its many writers make them, and of HTML.
fn text_forms(secret: &str) -> impl Iterator<Item = String> {
    let json = Canon::string(secret);
    let json = json.as_str()[1..json.as_str().len() - 1].to_owned();
    let slashes = json.replace('/', "\\/");
    let ascii = |text: &str, upper: bool, also: &str| {
        let mut out = String::with_capacity(text.len());
        for character in text.chars() {
            if character.is_ascii() && !also.contains(character) {
                out.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                out += &if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
            }
        }
        out
    };
    let escaped = [("", false), ("", true), ("<>&", false), ("<>&'", true), ("<>&'\u{7f}", false)];
    let escaped = escaped.map(|(also, upper)| ascii(&json, upper, also));
    let html = [("\"", "'"), ("&quot;", "'"), ("&quot;", "&#39;"), ("&quot;", "&#x27;")];
    let html = html.map(|(quote, apostrophe)| {
        let text = secret.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        text.replace('"', quote).replace('\'', apostrophe)
    });
    let doubled = json.replace('\\', "\\\\").replace('"', "\\\"");
    [json, slashes, doubled].into_iter().chain(escaped).chain(html)
}

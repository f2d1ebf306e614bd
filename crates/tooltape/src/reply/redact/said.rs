//! What a model says, without the secrets that it should never have learnt.

use std::borrow::Cow;
use std::sync::Arc;

use super::Redactor;
use crate::grant::{REDACTED, SECRET_SENT};
use crate::proposal::{Arguments, Proposal};

/// How often text may be escaped that is looked into: JSON in a string in a string.
const ESCAPES_MAX: usize = 3;

impl Redactor {
    /// The same text, where it holds no secret.
    pub(crate) fn shared(&self, text: Arc<str>) -> Arc<str> {
        match self.redact(&text) {
            Cow::Borrowed(_) => text,
            Cow::Owned(redacted) => redacted.into(),
        }
    }

    /// The proposal as it may be written down. Arguments with a secret in them are no arguments
    /// any more: what is approved, recorded and run is the same, and a secret is not recorded.
    pub(crate) fn proposal(
        &self,
        proposal: Proposal,
        is_tool: impl FnOnce(&str) -> bool,
    ) -> Proposal {
        if self.is_idle() {
            return proposal;
        }
        let Proposal { id, name, arguments } = proposal;
        let (id, is_tool) = (self.shared(id), is_tool(&name));
        let name = if is_tool { name } else { self.shared(name) };
        let arguments = match arguments {
            Arguments::Text(text) if self.tells(&text) => {
                Arguments::Unparsed { raw: self.untold(&text), error: SECRET_SENT.to_owned() }
            }
            Arguments::Text(text) => Arguments::Text(text),
            Arguments::Unparsed { raw, error } => {
                let raw = if self.tells(&raw) { self.untold(&raw) } else { raw };
                Arguments::Unparsed { raw, error: self.text(error) }
            }
        };
        Proposal { id, name, arguments }
    }

    /// Whether a text says a secret to whoever reads it as JSON.
    fn tells(&self, text: &str) -> bool {
        let mut text = Cow::Borrowed(text);
        for _ in 0..=ESCAPES_MAX {
            if self.finds(&text) {
                return true;
            }
            if !text.contains('\\') {
                return false;
            }
            text = Cow::Owned(unescaped(&text));
        }
        self.finds(&text)
    }

    /// What is left of a text that says a secret.
    fn untold(&self, text: &str) -> Arc<str> {
        let redacted = self.redact(text);
        if self.tells(&redacted) { REDACTED.into() } else { redacted.into() }
    }
}

/// A text without one level of JSON's escapes, whether or not it is JSON.
fn unescaped(text: &str) -> String {
    let mut units: Vec<u16> = Vec::with_capacity(text.len());
    let mut rest = text.encode_utf16().peekable();
    while let Some(unit) = rest.next() {
        if unit != u16::from(b'\\') {
            units.push(unit);
            continue;
        }
        match rest.next().map(|unit| u8::try_from(unit).unwrap_or(0)) {
            Some(b'u') => {
                let digit = |unit: &u16| char::from_u32(u32::from(*unit))?.to_digit(16);
                let (mut value, mut digits) = (0, 0);
                while let Some(next) = rest.peek().and_then(digit).filter(|_| digits < 4) {
                    (value, digits) = (value << 4 | next, digits + 1);
                    rest.next();
                }
                units.push(u16::try_from(value).unwrap_or(0));
            }
            Some(b'n') => units.push(u16::from(b'\n')),
            Some(b't') => units.push(u16::from(b'\t')),
            Some(b'r') => units.push(u16::from(b'\r')),
            Some(b'b') => units.push(8),
            Some(b'f') => units.push(12),
            Some(other) => units.push(u16::from(other)),
            None => {}
        }
    }
    String::from_utf16_lossy(&units)
}

//! What is read of a provider's JSON without copying it.

use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::failure::garbled;
use crate::model::ModelError;

/// A string, borrowed wherever it has no escapes.
#[derive(Clone, Debug, Default)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Text<'a>, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text)))
    }
}

/// A string, or the pieces of one, each as its JSON.
#[derive(Debug)]
pub(super) enum Pieces<'a> {
    One(Text<'a>),
    Many(Vec<&'a RawValue>),
}

impl<'de: 'a, 'a> Deserialize<'de> for Pieces<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Pieces<'a>, D::Error> {
        deserializer.deserialize_any(PiecesVisitor)
    }
}

struct PiecesVisitor;

impl<'de> Visitor<'de> for PiecesVisitor {
    type Value = Pieces<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> Result<Pieces<'de>, E> {
        TextVisitor.visit_borrowed_str(text).map(Pieces::One)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Pieces<'de>, E> {
        TextVisitor.visit_str(text).map(Pieces::One)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pieces<'de>, A::Error> {
        let mut pieces = Vec::new();
        while let Some(piece) = list.next_element()? {
            pieces.push(piece);
        }
        Ok(Pieces::Many(pieces))
    }
}

/// Reads what an API says at this place.
pub(super) fn read<'a, T: Deserialize<'a>>(json: &'a str) -> Result<T, ModelError> {
    serde_json::from_str(json).map_err(|err| garbled(&err, json))
}

/// The arguments of a call: the text of a string, or of whatever else stands there.
pub(super) fn arguments(json: &RawValue) -> Result<Cow<'_, str>, ModelError> {
    match json.get() {
        text if text.starts_with('"') => Ok(read::<Text<'_>>(text)?.0),
        "null" => Ok(Cow::Borrowed("")),
        text => Ok(Cow::Borrowed(text)),
    }
}

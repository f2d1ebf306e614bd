//! Flat objects that are canonical as they stand, read in one pass: most of what models send.

use std::fmt;

use serde::de::value::BorrowedStrDeserializer;
use serde::de::{DeserializeOwned, DeserializeSeed, Deserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;

use super::limits::Limits;
use super::string;

/// The most fields of a flat object.
const FIELDS_MAX: usize = 8;

/// The most bytes of a flat object.
const BYTES_MAX: usize = 1 << 16;

/// The most digits of an integer in a flat object; any such integer has 64 bits.
const DIGITS_MAX: usize = 18;

/// An object in canonical form that holds a few strings without escapes, short integers, `true`,
/// `false` and `null`.
///
/// Whatever is read here, [`Doc`](super::Doc) accepts too and finds canonical. It is no table, so
/// that reading, checking and deserialising it is little work; of anything else, it says nothing.
pub(crate) struct Flat<'t> {
    fields: [Field<'t>; FIELDS_MAX],
    len: usize,
}

/// A field of a flat object.
#[derive(Clone, Copy)]
pub(crate) struct Field<'t> {
    pub(crate) name: &'t str,
    pub(crate) value: Scalar<'t>,
}

/// The value of a field.
#[derive(Clone, Copy)]
pub(crate) enum Scalar<'t> {
    Null,
    Bool(bool),
    Integer(i64),
    Text(&'t str),
}

impl<'t> Flat<'t> {
    /// Room for an object.
    #[inline]
    pub(crate) fn new() -> Flat<'t> {
        Flat { fields: [Field { name: "", value: Scalar::Null }; FIELDS_MAX], len: 0 }
    }

    /// Reads a text that is a flat object, within limits; says nothing of any other.
    #[inline]
    pub(crate) fn read(&mut self, text: &'t str, limits: &Limits) -> Option<()> {
        let bytes = text.as_bytes();
        let roomy =
            limits.depth > 0 && limits.nodes > FIELDS_MAX && limits.integer_digits >= DIGITS_MAX;
        if !roomy || bytes.len() > BYTES_MAX.min(limits.bytes) || bytes.first() != Some(&b'{') {
            return None;
        }
        self.len = 0;
        let mut at = 1;
        loop {
            let (name, end) = plain_string(text, at)?;
            let ascends =
                |last: &Field<'_>| string::order(last.name.as_bytes(), name.as_bytes()).is_lt();
            if bytes.get(end) != Some(&b':') || !self.fields().last().is_none_or(ascends) {
                return None;
            }
            let (value, end) = scalar(text, end + 1)?;
            *self.fields.get_mut(self.len)? = Field { name, value };
            self.len += 1;
            match bytes.get(end) {
                Some(b',') => at = end + 1,
                Some(b'}') if end + 1 == bytes.len() => return Some(()),
                Some(_) | None => return None,
            }
        }
    }

    /// Its fields, in the order of their names.
    #[inline]
    pub(crate) fn fields(&self) -> &[Field<'t>] {
        &self.fields[..self.len]
    }

    /// The object as a type, if that is surely what `serde_json` would read from the text.
    #[inline]
    pub(crate) fn typed<T: DeserializeOwned>(&self) -> Option<T> {
        let mut fields = Fields(self.fields());
        let typed = T::deserialize(Object(&mut fields)).ok()?;
        fields.0.is_empty().then_some(typed)
    }
}

/// A string without escapes, and where it ends.
#[inline(always)]
fn plain_string(text: &str, at: usize) -> Option<(&str, usize)> {
    let bytes = text.as_bytes();
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    let end = string::run_end(bytes, at + 1);
    (bytes.get(end) == Some(&b'"')).then(|| (&text[at + 1..end], end + 1))
}

/// A value that holds no other, and where it ends.
#[inline]
fn scalar(text: &str, at: usize) -> Option<(Scalar<'_>, usize)> {
    let bytes = text.as_bytes();
    let word =
        |word: &[u8], value| bytes[at..].starts_with(word).then_some((value, at + word.len()));
    match bytes.get(at)? {
        b'"' => plain_string(text, at).map(|(text, end)| (Scalar::Text(text), end)),
        b'0' => Some((Scalar::Integer(0), at + 1)),
        b'1'..=b'9' => natural(bytes, at).map(|(natural, end)| (Scalar::Integer(natural), end)),
        b'-' if matches!(bytes.get(at + 1), Some(b'1'..=b'9')) => {
            natural(bytes, at + 1).map(|(natural, end)| (Scalar::Integer(-natural), end))
        }
        b't' => word(b"true", Scalar::Bool(true)),
        b'f' => word(b"false", Scalar::Bool(false)),
        b'n' => word(b"null", Scalar::Null),
        _ => None,
    }
}

/// A natural number that begins with no `0`, and where its digits end.
#[inline]
fn natural(bytes: &[u8], start: usize) -> Option<(i64, usize)> {
    let mut natural = 0;
    let mut at = start;
    while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
        if at - start == DIGITS_MAX {
            return None;
        }
        natural = natural * 10 + i64::from(digit - b'0');
        at += 1;
    }
    Some((natural, at))
}

/// The type wants what only `serde_json` itself can give, or refuses what there is.
#[derive(Debug)]
pub(crate) struct NotFlat;

impl fmt::Display for NotFlat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not a flat object")
    }
}

impl std::error::Error for NotFlat {}

impl serde::de::Error for NotFlat {
    fn custom<T: fmt::Display>(_: T) -> NotFlat {
        NotFlat
    }
}

/// The fields that were not read yet.
struct Fields<'f, 'de>(&'f [Field<'de>]);

impl<'de> MapAccess<'de> for &mut Fields<'_, 'de> {
    type Error = NotFlat;

    #[inline]
    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, NotFlat> {
        let Some(field) = self.0.first() else { return Ok(None) };
        seed.deserialize(Name(field.name)).map(Some)
    }

    #[inline]
    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, NotFlat> {
        let (field, rest) = self.0.split_first().ok_or(NotFlat)?;
        self.0 = rest;
        seed.deserialize(field.value)
    }
}

/// Refuses what a value cannot be asked for here.
macro_rules! refuse {
    ($($method:ident($($arg:ident: $type:ty),*))*) => {$(
        fn $method<V: Visitor<'de>>(self, $($arg: $type,)* _: V) -> Result<V::Value, NotFlat> {
            $(let _ = $arg;)*
            Err(NotFlat)
        }
    )*};
}

/// A newtype is what it wraps, unless `serde_json` means something of its own by its name.
macro_rules! newtype {
    () => {
        #[inline]
        fn deserialize_newtype_struct<V: Visitor<'de>>(
            self,
            name: &'static str,
            visitor: V,
        ) -> Result<V::Value, NotFlat> {
            match name.starts_with('$') {
                true => Err(NotFlat),
                false => visitor.visit_newtype_struct(self),
            }
        }
    };
}

/// The object itself.
struct Object<'m, 'f, 'de>(&'m mut Fields<'f, 'de>);

impl<'de> Deserializer<'de> for Object<'_, '_, 'de> {
    type Error = NotFlat;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotFlat> {
        visitor.visit_map(self.0)
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotFlat> {
        visitor.visit_some(self)
    }

    newtype!();
    forward_to_deserialize_any! { map struct }
    refuse! {
        deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64()
        deserialize_u128() deserialize_f32() deserialize_f64() deserialize_char() deserialize_str()
        deserialize_string() deserialize_bytes() deserialize_byte_buf() deserialize_unit()
        deserialize_unit_struct(name: &'static str) deserialize_seq()
        deserialize_tuple(len: usize) deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
        deserialize_identifier() deserialize_ignored_any()
    }
}

/// The name of a field.
struct Name<'de>(&'de str);

impl<'de> Deserializer<'de> for Name<'de> {
    type Error = NotFlat;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotFlat> {
        visitor.visit_borrowed_str(self.0)
    }

    newtype!();
    forward_to_deserialize_any! { char str string identifier ignored_any }
    refuse! {
        deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
        deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64()
        deserialize_u128() deserialize_f32() deserialize_f64() deserialize_bytes()
        deserialize_byte_buf() deserialize_option() deserialize_unit()
        deserialize_unit_struct(name: &'static str) deserialize_seq()
        deserialize_tuple(len: usize) deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map() deserialize_struct(name: &'static str, fields: &'static [&'static str])
        deserialize_enum(name: &'static str, variants: &'static [&'static str])
    }
}

/// Gives what was asked for, where the value is that; `serde_json` gives nothing else either.
macro_rules! give {
    ($($given:pat => $($method:ident)*;)*) => {$($(
        #[inline]
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotFlat> {
            match self {
                $given => self.deserialize_any(visitor),
                _ => Err(NotFlat),
            }
        }
    )*)*};
}

impl<'de> Deserializer<'de> for Scalar<'de> {
    type Error = NotFlat;

    #[inline]
    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotFlat> {
        match self {
            Scalar::Null => visitor.visit_unit(),
            Scalar::Bool(truth) => visitor.visit_bool(truth),
            Scalar::Integer(integer) => match u64::try_from(integer) {
                Ok(natural) => visitor.visit_u64(natural),
                Err(_) => visitor.visit_i64(integer),
            },
            Scalar::Text(text) => visitor.visit_borrowed_str(text),
        }
    }

    #[inline]
    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotFlat> {
        match self {
            Scalar::Null => visitor.visit_none(),
            Scalar::Bool(_) | Scalar::Integer(_) | Scalar::Text(_) => visitor.visit_some(self),
        }
    }

    #[inline]
    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, NotFlat> {
        match self {
            Scalar::Text(text) => visitor.visit_enum(BorrowedStrDeserializer::new(text)),
            Scalar::Null | Scalar::Bool(_) | Scalar::Integer(_) => Err(NotFlat),
        }
    }

    give! {
        Scalar::Bool(_) => deserialize_bool;
        Scalar::Integer(_) =>
            deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
            deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
            deserialize_f32 deserialize_f64;
        Scalar::Text(_) => deserialize_char deserialize_str deserialize_string
            deserialize_identifier;
        Scalar::Null => deserialize_unit;
    }
    newtype!();
    refuse! {
        deserialize_i128() deserialize_u128() deserialize_bytes() deserialize_byte_buf()
        deserialize_unit_struct(name: &'static str) deserialize_seq()
        deserialize_tuple(len: usize) deserialize_tuple_struct(name: &'static str, len: usize)
        deserialize_map() deserialize_struct(name: &'static str, fields: &'static [&'static str])
    }

    #[inline]
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, NotFlat> {
        visitor.visit_unit()
    }
}

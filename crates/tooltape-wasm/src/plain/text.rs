//! Values of functions as JSON text, of which no more is written than there may be.

use serde_json::Number;
use wasmtime::component::Val;

/// Why a value was not written.
pub(super) enum Unwritten {
    /// It has more bytes than it may have.
    TooLong,
    /// It has no JSON.
    NoJson(String),
}

/// A value that may be missing, as JSON of at most so many bytes.
pub(super) fn written(value: Option<&Val>, most: u64) -> Result<String, Unwritten> {
    let mut text = Text::new(most);
    text.optional(value)?;
    Ok(text.text)
}

/// What a model reads of the error that a function answered with, in at most so many bytes.
pub(super) fn told(err: Option<&Val>, most: u64) -> String {
    match err {
        None | Some(Val::Option(None)) => "the function answered with an error".to_owned(),
        Some(Val::Option(Some(err))) => told(Some(err), most),
        Some(Val::String(text) | Val::Enum(text) | Val::Variant(text, None)) => text.clone(),
        Some(Val::Char(char)) => char.to_string(),
        Some(err) => {
            let mut text = Text::new(most);
            match text.value(err) {
                // The beginning says more than nothing.
                Ok(()) | Err(Unwritten::TooLong) => text.text,
                Err(Unwritten::NoJson(why)) => why,
            }
        }
    }
}

/// Text that grows no longer than it may.
struct Text {
    text: String,
    most: usize,
}

impl Text {
    fn new(most: u64) -> Text {
        Text { text: String::new(), most: usize::try_from(most).unwrap_or(usize::MAX) }
    }

    fn push(&mut self, text: &str) -> Result<(), Unwritten> {
        if text.len() > self.most - self.text.len() {
            return Err(Unwritten::TooLong);
        }
        self.text.push_str(text);
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), Unwritten> {
        // What is too long as it stands need not be escaped first.
        if text.len() > self.most {
            return Err(Unwritten::TooLong);
        }
        let escaped = serde_json::to_string(text);
        self.push(&escaped.map_err(|err| Unwritten::NoJson(err.to_string()))?)
    }

    fn number(&mut self, number: f64) -> Result<(), Unwritten> {
        match Number::from_f64(number) {
            Some(number) => self.push(&number.to_string()),
            None => {
                let why = format!("the result holds `{number}`, which has no JSON");
                Err(Unwritten::NoJson(why))
            }
        }
    }

    fn optional(&mut self, value: Option<&Val>) -> Result<(), Unwritten> {
        match value {
            Some(value) => self.value(value),
            None => self.push("null"),
        }
    }

    fn value(&mut self, value: &Val) -> Result<(), Unwritten> {
        match value {
            Val::Bool(value) => self.push(&value.to_string()),
            Val::S8(value) => self.push(&value.to_string()),
            Val::U8(value) => self.push(&value.to_string()),
            Val::S16(value) => self.push(&value.to_string()),
            Val::U16(value) => self.push(&value.to_string()),
            Val::S32(value) => self.push(&value.to_string()),
            Val::U32(value) => self.push(&value.to_string()),
            Val::S64(value) => self.push(&value.to_string()),
            Val::U64(value) => self.push(&value.to_string()),
            Val::Float32(value) => self.number(f64::from(*value)),
            Val::Float64(value) => self.number(*value),
            Val::Char(char) => self.string(char.encode_utf8(&mut [0; 4])),
            Val::String(text) => self.string(text),
            Val::List(items) | Val::Tuple(items) => self.array(items, Text::value),
            Val::Flags(names) => self.array(names, |text, name| text.string(name)),
            Val::Record(fields) => {
                self.object(fields.iter().map(|(name, value)| (name.as_str(), Some(value))))
            }
            Val::Enum(name) | Val::Variant(name, None) => self.string(name),
            Val::Variant(name, Some(value)) => self.object([(name.as_str(), Some(&**value))]),
            Val::Option(value) => self.optional(value.as_deref()),
            Val::Result(Ok(value)) => self.object([("ok", value.as_deref())]),
            Val::Result(Err(value)) => self.object([("err", value.as_deref())]),
            Val::Resource(_)
            | Val::Future(_)
            | Val::Stream(_)
            | Val::ErrorContext(_)
            | Val::Map(_)
            | Val::FixedLengthList(_) => {
                Err(Unwritten::NoJson("the result has no JSON".to_owned()))
            }
        }
    }

    fn array<T>(
        &mut self,
        items: &[T],
        write: impl Fn(&mut Text, &T) -> Result<(), Unwritten>,
    ) -> Result<(), Unwritten> {
        self.push("[")?;
        for (index, item) in items.iter().enumerate() {
            self.push(if index == 0 { "" } else { "," })?;
            write(self, item)?;
        }
        self.push("]")
    }

    fn object<'v>(
        &mut self,
        fields: impl IntoIterator<Item = (&'v str, Option<&'v Val>)>,
    ) -> Result<(), Unwritten> {
        self.push("{")?;
        for (index, (name, value)) in fields.into_iter().enumerate() {
            self.push(if index == 0 { "" } else { "," })?;
            self.string(name)?;
            self.push(":")?;
            self.optional(value)?;
        }
        self.push("}")
    }
}

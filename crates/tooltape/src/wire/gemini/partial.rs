//! Arguments that Gemini tells in pieces, each with its path.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::model::ModelError;
use crate::wire::borrowed::Text;
use crate::wire::failure::garbled;

/// The steps of a path.
const STEPS_MAX: usize = 64;
/// The bytes that an object or a list counts for beside what is in it.
const NODE_BYTES: usize = 512;

/// Arguments as far as they are known.
#[derive(Clone, Debug, Default)]
pub(super) struct Partial(Map<String, Value>);

/// A piece of arguments: a value, or more of a string.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Piece<'a> {
    #[serde(borrow)]
    json_path: Text<'a>,
    #[serde(borrow)]
    string_value: Option<Text<'a>>,
    number_value: Option<serde_json::Number>,
    bool_value: Option<bool>,
}

/// A step of a path.
enum Step<'a> {
    Field(&'a str),
    Index(usize),
}

impl Piece<'_> {
    /// The bytes that are kept of it.
    pub(super) fn bytes(&self) -> usize {
        self.json_path.len() + self.string_value.as_ref().map_or(0, |text| text.len())
    }
}

impl Partial {
    /// The text of the arguments.
    pub(super) fn text(self) -> String {
        Value::Object(self.0).to_string()
    }

    /// Adds a piece, and says how many bytes that takes beside its own.
    pub(super) fn add(&mut self, piece: &Piece<'_>) -> Result<usize, ModelError> {
        let mut bytes = 0;
        let unknown = |why: &str| garbled(&why, &piece.json_path);
        let steps = steps(&piece.json_path).ok_or_else(|| unknown("no path of arguments"))?;
        let mut steps = steps.into_iter();
        let Some(Step::Field(first)) = steps.next() else {
            return Err(unknown("no path of an object"));
        };
        let mut value = self.0.entry(first).or_insert(Value::Null);
        for step in steps {
            value = match (step, value) {
                (Step::Field(field), value @ (Value::Null | Value::Object(_))) => {
                    if value.is_null() {
                        bytes += NODE_BYTES;
                        *value = Value::Object(Map::new());
                    }
                    let fields = value.as_object_mut().expect("it is an object by now");
                    fields.entry(field).or_insert(Value::Null)
                }
                (Step::Index(index), value @ (Value::Null | Value::Array(_))) => {
                    if value.is_null() {
                        bytes += NODE_BYTES;
                        *value = Value::Array(Vec::new());
                    }
                    let list = value.as_array_mut().expect("it is a list by now");
                    if index == list.len() {
                        list.push(Value::Null);
                    }
                    list.get_mut(index).ok_or_else(|| unknown("a path past the end of a list"))?
                }
                _ => return Err(unknown("a path through a value")),
            };
        }
        match (&piece.string_value, &piece.number_value, piece.bool_value, value) {
            (Some(more), _, _, Value::String(text)) => text.push_str(more),
            (Some(text), _, _, value) => *value = Value::String(text.to_string()),
            (None, Some(number), _, value) => *value = Value::Number(number.clone()),
            (None, None, Some(is), value) => *value = Value::Bool(is),
            (None, None, None, value) => *value = Value::Null,
        }
        Ok(bytes)
    }
}

/// The steps of `$.field[0]['field']`.
fn steps(path: &str) -> Option<Vec<Step<'_>>> {
    let mut rest = path.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() {
        if steps.len() >= STEPS_MAX {
            return None;
        }
        if let Some(quote) =
            rest.strip_prefix("['").map(|_| '\'').or_else(|| rest.strip_prefix("[\"").map(|_| '"'))
        {
            let (field, tail) = rest[2..].split_once(quote)?;
            steps.push(Step::Field(field));
            rest = tail.strip_prefix(']')?;
        } else if let Some(tail) = rest.strip_prefix('[') {
            let (index, tail) = tail.split_once(']')?;
            steps.push(Step::Index(index.parse().ok()?));
            rest = tail;
        } else {
            let tail = rest.strip_prefix('.')?;
            let end = tail.find(['.', '[']).unwrap_or(tail.len());
            steps.push(Step::Field(&tail[..end]));
            rest = &tail[end..];
        }
    }
    Some(steps)
}

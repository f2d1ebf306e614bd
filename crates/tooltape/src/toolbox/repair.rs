//! Repairs: changes to arguments that a run may allow, made before anything is hashed.

use std::borrow::Cow;

use serde_json::Value;

use crate::canon::{Doc, Kind, Limits};
use crate::proposal::RepairStep;
use crate::tool::Registered;

/// Which repairs a run allows. None unless each is named; each one that was made is on the tape.
///
/// ```
/// use tooltape::Repairs;
/// let repairs = Repairs { fence: true, ..Repairs::default() };
/// assert!(!repairs.numeric_string);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repairs {
    /// Take a Markdown fence off the JSON.
    pub fence: bool,
    /// Take JSON out of a JSON string.
    pub double_encoding: bool,
    /// Read strings that spell numbers as numbers, where the schema wants numbers.
    pub numeric_string: bool,
    /// Read empty arguments as `{}` for tools that change something, too.
    pub empty: bool,
}

impl Repairs {
    pub(super) fn any(&self) -> bool {
        self.fence || self.double_encoding
    }
}

/// Arguments on their way through the repairs.
pub(super) struct Text<'t> {
    text: Cow<'t, str>,
    steps: Vec<RepairStep>,
}

impl<'t> Text<'t> {
    pub(super) fn new(text: &'t str) -> Text<'t> {
        Text { text: Cow::Borrowed(text), steps: Vec::new() }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    pub(super) fn steps(self) -> Vec<RepairStep> {
        self.steps
    }

    /// Takes off what is wrapped around the JSON.
    pub(super) fn unwrap(&mut self, repairs: &Repairs) {
        if repairs.fence
            && let Some(inside) = unfenced(&self.text)
        {
            self.become_text(inside.to_owned(), RepairStep::Fence);
        }
        if repairs.double_encoding
            && let Ok(inside) = serde_json::from_str::<String>(&self.text)
        {
            self.become_text(inside, RepairStep::DoubleEncoding);
        }
    }

    /// Spells numbers as numbers at the top level, where the schema says number or integer.
    /// Says whether anything changed.
    pub(super) fn respell(
        &mut self,
        registered: &Registered,
        repairs: &Repairs,
        limits: &Limits,
    ) -> bool {
        if !repairs.numeric_string {
            return false;
        }
        let respelled = match Doc::read(&self.text, limits) {
            Ok(doc) => respelled(&doc, &registered.spec().input),
            Err(_) => None,
        };
        match respelled {
            Some(text) => {
                self.become_text(text, RepairStep::NumericString);
                true
            }
            None => false,
        }
    }

    fn become_text(&mut self, text: String, step: RepairStep) {
        self.text = Cow::Owned(text);
        self.steps.push(step);
    }
}

/// What stands between a pair of Markdown fences, if the text is just that.
fn unfenced(text: &str) -> Option<&str> {
    let inside = text.trim_ascii().strip_prefix("```")?.strip_suffix("```")?;
    let (language, body) = inside.split_once('\n')?;
    language.trim_ascii().chars().all(|c| c.is_ascii_alphanumeric()).then(|| body.trim_ascii())
}

fn respelled(doc: &Doc<'_>, schema: &Value) -> Option<String> {
    if doc.root().kind() != Kind::Object {
        return None;
    }
    let mut changed = false;
    let mut fields = Vec::new();
    for (key, node) in doc.root().fields() {
        let wanted = &schema["properties"][key.as_ref()]["type"];
        let number = node.as_str().filter(|_| wanted == "integer" || wanted == "number");
        let number = number.filter(|text| spells_number(text));
        changed |= number.is_some();
        let value = number.map_or_else(|| node.raw().to_owned(), Cow::into_owned);
        fields.push(format!("{}:{value}", Value::from(&*key)));
    }
    changed.then(|| format!("{{{}}}", fields.join(",")))
}

fn spells_number(text: &str) -> bool {
    Doc::read(text, &Limits::default()).is_ok_and(|doc| doc.root().kind() == Kind::Number)
}

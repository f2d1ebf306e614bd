//! A query, read from text.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Value;

/// The most steps of a query, its filters and their names counted with them. The search keeps each
/// step in a bit, and one for the end; and no value costs it more than so much.
const PARTS_MAX: usize = 63;

/// What to find in a document.
#[derive(Debug)]
pub struct Query {
    pub(crate) steps: Vec<Step>,
}

/// From a value to values in it, or to itself.
#[derive(Debug)]
pub(crate) struct Step {
    pub(crate) kind: StepKind,
    pub(crate) filters: Vec<Filter>,
}

#[derive(Debug)]
pub(crate) enum StepKind {
    /// One member or element.
    Name(Name),
    /// Each member or element.
    Each,
    /// The value itself, and all below it.
    Below,
}

/// The name of a member, which may also be the number of an element.
#[derive(Debug)]
pub(crate) struct Name {
    pub(crate) text: String,
    pub(crate) index: Option<usize>,
}

/// What must hold for a value.
#[derive(Debug)]
pub(crate) struct Filter {
    path: Vec<Name>,
    comparison: Option<(Operator, Value)>,
}

#[derive(Clone, Copy, Debug)]
enum Operator {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// Why a text is no query.
#[derive(Debug)]
pub struct QueryError {
    at: usize,
    expected: &'static str,
}

impl Query {
    /// Reads a query.
    ///
    /// # Errors
    ///
    /// Says what was expected, and after how many bytes.
    pub fn parse(text: &str) -> Result<Query, QueryError> {
        let mut reader = Reader { text, at: 0, parts: 0 };
        let mut steps = Vec::new();
        while reader.eat("/") {
            steps.push(reader.step()?);
        }
        match reader.rest() {
            "" => Ok(Query { steps }),
            _ => Err(reader.expected("`/`, `[` or the end")),
        }
    }
}

impl Filter {
    pub(crate) fn admits(&self, value: &Value) -> bool {
        let found = self.path.iter().try_fold(value, |value, name| name.of(value));
        match (found, &self.comparison) {
            (None, _) => false,
            (Some(_), None) => true,
            (Some(found), Some((operator, literal))) => operator.holds(found, literal),
        }
    }
}

impl Name {
    fn new(text: String) -> Name {
        let is_number = text == "0" || !text.starts_with(['0', '+']);
        let index = text.parse().ok().filter(|_| is_number);
        Name { text, index }
    }

    fn of<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        match value {
            Value::Object(members) => members.get(&self.text),
            Value::Array(elements) => elements.get(self.index?),
            _ => None,
        }
    }
}

impl Operator {
    fn holds(self, value: &Value, literal: &Value) -> bool {
        let order = order(value, literal);
        match self {
            Operator::Equal => order == Some(Ordering::Equal),
            Operator::Unequal => order != Some(Ordering::Equal),
            Operator::Less => order == Some(Ordering::Less),
            Operator::LessOrEqual => order.is_some_and(Ordering::is_le),
            Operator::Greater => order == Some(Ordering::Greater),
            Operator::GreaterOrEqual => order.is_some_and(Ordering::is_ge),
        }
    }
}

/// Integers are compared exactly, also those that a double cannot hold.
fn order(value: &Value, literal: &Value) -> Option<Ordering> {
    match (value, literal) {
        (Value::Number(a), Value::Number(b)) => match (a.as_i128(), b.as_i128()) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (Value::Bool(a), Value::Bool(b)) if a == b => Some(Ordering::Equal),
        (Value::Null, Value::Null) => Some(Ordering::Equal),
        _ => None,
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    parts: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn eat(&mut self, token: &str) -> bool {
        let is_next = self.rest().starts_with(token);
        self.at += if is_next { token.len() } else { 0 };
        is_next
    }

    fn expected(&self, expected: &'static str) -> QueryError {
        QueryError { at: self.at, expected }
    }

    /// Counts one part more.
    fn part(&mut self) -> Result<(), QueryError> {
        self.parts += 1;
        match self.parts <= PARTS_MAX {
            true => Ok(()),
            false => Err(self.expected("at most 63 steps, filters and names in filters")),
        }
    }

    fn step(&mut self) -> Result<Step, QueryError> {
        self.part()?;
        let kind = match self.bare() {
            "**" => StepKind::Below,
            "*" => StepKind::Each,
            _ => StepKind::Name(self.name()?),
        };
        if !matches!(kind, StepKind::Name(_)) {
            self.at += self.bare().len();
        }
        let mut filters = Vec::new();
        while self.eat("[") {
            filters.push(self.filter()?);
        }
        Ok(Step { kind, filters })
    }

    /// What stands here up to the next sign that means something.
    fn bare(&self) -> &'a str {
        let rest = self.rest();
        &rest[..rest.find(['/', '[', ']', '=', '!', '<', '>', '"']).unwrap_or(rest.len())]
    }

    fn name(&mut self) -> Result<Name, QueryError> {
        if self.rest().starts_with('"') {
            return match self.json()? {
                Value::String(text) => Ok(Name::new(text)),
                _ => Err(self.expected("a name")),
            };
        }
        let bare = self.bare();
        let mut parts = bare.split('~');
        let mut text = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (sign, after) = match part.as_bytes().first() {
                Some(b'0') => ('~', &part[1..]),
                Some(b'1') => ('/', &part[1..]),
                _ => return Err(self.expected("a name in which `~0` or `~1` stands for `~`, `/`")),
            };
            text.push(sign);
            text.push_str(after);
        }
        self.at += bare.len();
        Ok(Name::new(text))
    }

    fn filter(&mut self) -> Result<Filter, QueryError> {
        self.part()?;
        let mut path = Vec::new();
        while self.eat("/") {
            self.part()?;
            path.push(self.name()?);
        }
        let operator = self.operator();
        if operator.is_none() && path.is_empty() {
            return Err(self.expected("`/` and a name, or a comparison"));
        }
        let comparison = match operator {
            Some(operator) => Some((operator, self.literal()?)),
            None => None,
        };
        match self.eat("]") {
            true => Ok(Filter { path, comparison }),
            false => Err(self.expected("a comparison or `]`")),
        }
    }

    fn operator(&mut self) -> Option<Operator> {
        // The longer of two that begin alike comes first.
        let operators = [
            ("<=", Operator::LessOrEqual),
            (">=", Operator::GreaterOrEqual),
            ("!=", Operator::Unequal),
            ("=", Operator::Equal),
            ("<", Operator::Less),
            (">", Operator::Greater),
        ];
        operators.into_iter().find_map(|(token, operator)| self.eat(token).then_some(operator))
    }

    fn literal(&mut self) -> Result<Value, QueryError> {
        match self.json()? {
            Value::Array(_) | Value::Object(_) => Err(self.expected("no array and no object")),
            literal => Ok(literal),
        }
    }

    /// The one JSON value that stands here.
    fn json(&mut self) -> Result<Value, QueryError> {
        let mut values = serde_json::Deserializer::from_str(self.rest()).into_iter();
        match values.next() {
            Some(Ok(value)) => {
                self.at += values.byte_offset();
                Ok(value)
            }
            _ => Err(self.expected("a string, a number, `true`, `false` or `null`, as in JSON")),
        }
    }
}

impl fmt::Display for QueryError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let QueryError { at, expected } = self;
        write!(formatter, "the query is wrong after {at} bytes: expected {expected}")
    }
}

impl std::error::Error for QueryError {}

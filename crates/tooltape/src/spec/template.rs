//! Footprints that a host writes down for tools that it did not write.

use serde_json::{Map, Value};

use super::footprint::{Footprint, FootprintOf, Resource, ResourceError};

/// A resource key with arguments in it, such as `db:customers/{customer}`.
///
/// ```
/// use tooltape::KeyTemplate;
///
/// let template = KeyTemplate::parse("db:customers/{customer}").unwrap();
/// assert_eq!(template.arguments().collect::<Vec<_>>(), ["customer"]);
/// assert!(KeyTemplate::parse("{domain}:a").is_err());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyTemplate {
    text: Box<str>,
    /// The domain and what else stands before the first argument.
    head: Box<str>,
    /// Each argument, and the text behind it.
    parts: Vec<(Box<str>, Box<str>)>,
}

/// Why a text is not a template of resource keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyTemplateError {
    /// A brace does not belong to an argument.
    #[error("`{template}` has a brace that is not part of an argument such as `{{path}}`")]
    Brace {
        /// The text.
        template: String,
    },
    /// An argument would choose the domain.
    #[error("`{template}` has an argument in its domain, which must be written out")]
    Domain {
        /// The text.
        template: String,
    },
    /// It is no key, whatever the arguments.
    #[error(transparent)]
    Key(#[from] ResourceError),
}

impl KeyTemplate {
    /// Reads a key in which `{name}` stands for the top-level argument of that name.
    pub fn parse(text: &str) -> Result<KeyTemplate, KeyTemplateError> {
        let brace = || KeyTemplateError::Brace { template: text.into() };
        let mut pieces = text.split('{');
        let head = pieces.next().unwrap_or_default();
        let part = |piece: &str| {
            let (name, rest) = piece.split_once('}')?;
            (!name.is_empty() && !rest.contains('}')).then(|| (name.into(), rest.into()))
        };
        let parts = pieces.map(|piece| part(piece).ok_or_else(brace)).collect::<Result<_, _>>()?;
        let template = KeyTemplate { text: text.into(), head: head.into(), parts };
        if head.contains('}') {
            return Err(brace());
        }
        if !head.contains(':') && !template.parts.is_empty() {
            return Err(KeyTemplateError::Domain { template: text.into() });
        }
        Resource::parse(text)?;
        Ok(template)
    }

    /// The arguments that it names, in their order.
    pub fn arguments(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().map(|(name, _)| &**name)
    }

    /// The key of a call; everything, where an argument is missing or no key can be made of it.
    fn key(&self, args: &Map<String, Value>) -> Resource {
        let key = self.filled(args).and_then(|text| Resource::parse(&text).ok());
        key.unwrap_or(Resource::everything())
    }

    fn filled(&self, args: &Map<String, Value>) -> Option<String> {
        let mut text = self.head.to_string();
        for (name, rest) in &self.parts {
            match args.get(&**name)? {
                Value::String(value) => text.push_str(value),
                Value::Number(value) => text.push_str(&value.to_string()),
                Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => return None,
            }
            text.push_str(rest);
        }
        Some(text)
    }
}

impl FootprintOf {
    /// A hook that fills templates: what a call writes, and what else it reads.
    ///
    /// An argument must be a text or a number. Where it is missing, is something else, or makes no
    /// key, the call touches everything. The hook is named by its templates.
    ///
    /// ```
    /// use tooltape::{FootprintOf, KeyTemplate};
    ///
    /// let template = |text| KeyTemplate::parse(text).unwrap();
    /// let hook = FootprintOf::templates([template("db:{table}/{row}")], [template("db:schema")]);
    /// assert_eq!(hook.name(), "writes db:{table}/{row}, reads db:schema");
    /// ```
    pub fn templates(
        writes: impl IntoIterator<Item = KeyTemplate>,
        reads: impl IntoIterator<Item = KeyTemplate>,
    ) -> FootprintOf {
        let writes: Vec<KeyTemplate> = writes.into_iter().collect();
        let reads: Vec<KeyTemplate> = reads.into_iter().collect();
        let named = |verb: &'static str, templates: &[KeyTemplate]| -> Vec<String> {
            templates.iter().map(|template| format!("{verb} {}", template.text)).collect()
        };
        let name = [named("writes", &writes), named("reads", &reads)].concat();
        let name = if name.is_empty() { "nothing".to_owned() } else { name.join(", ") };
        FootprintOf::args(name, move |args| {
            // Arguments that are no object leave every template unfilled.
            let args: Map<String, Value> = args.parse().unwrap_or_default();
            let footprint = writes
                .iter()
                .fold(Footprint::none(), |footprint, key| footprint.and_writes(key.key(&args)));
            reads.iter().fold(footprint, |footprint, key| footprint.and_reads(key.key(&args)))
        })
    }
}

//! How a model is named: a script, a provider's model, or the address of a server.

use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};
use tooltape::wire::Api;

/// The model that a server is asked for where its address names none.
const SERVER_MODEL: &str = "default";

/// Which model: `script`, `script:FILE`, `openai:MODEL`, or the address of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ModelName {
    /// The script that the configuration names.
    Script,
    /// Another script.
    ScriptFile(String),
    /// A model of a provider.
    Provided(Api, String),
    /// A model of a server that speaks as OpenAI's Chat Completions do.
    Served { base: String, model: String },
}

impl FromStr for ModelName {
    type Err = String;

    fn from_str(text: &str) -> Result<ModelName, String> {
        let unknown = || {
            format!(
                "unknown model `{text}`, expected `script`, `script:FILE`, `openai:MODEL`, \
                 `responses:MODEL`, `anthropic:MODEL`, `gemini:MODEL`, `mistral:MODEL` or \
                 `http://HOST/v1#MODEL`"
            )
        };
        if text.chars().any(char::is_control) {
            return Err("a model's name has no control characters".to_owned());
        }
        if text == "script" {
            return Ok(ModelName::Script);
        }
        if text.starts_with("http://") || text.starts_with("https://") {
            let (base, model) = text.split_once('#').unwrap_or((text, SERVER_MODEL));
            let (base, model) = (base.to_owned(), model.to_owned());
            return Ok(ModelName::Served { base, model });
        }
        let (kind, model) = text.split_once(':').ok_or_else(unknown)?;
        if model.is_empty() {
            return Err(format!("`{text}` names no model: expected `{kind}:MODEL`"));
        }
        match (kind, kind.parse::<Api>()) {
            ("script", _) => Ok(ModelName::ScriptFile(model.to_owned())),
            (_, Ok(Api::Compatible)) | (_, Err(_)) => Err(unknown()),
            (_, Ok(api)) => Ok(ModelName::Provided(api, model.to_owned())),
        }
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ModelName::Script => f.write_str("script"),
            ModelName::ScriptFile(file) => write!(f, "script:{file}"),
            ModelName::Provided(api, model) => write!(f, "{api}:{model}"),
            ModelName::Served { base, model } => write!(f, "{base}#{model}"),
        }
    }
}

impl<'de> Deserialize<'de> for ModelName {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ModelName, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl JsonSchema for ModelName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ModelName".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern":
                "^(script|(script|openai|responses|anthropic|gemini|mistral):.+|https?://.+)$",
        })
    }
}

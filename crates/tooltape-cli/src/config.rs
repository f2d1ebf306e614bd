//! What `tooltape.toml` may say.

mod file;
mod keys;
mod layers;
mod rule;

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use schemars::JsonSchema;
use schemars::transform::{RecursiveTransform, Transform as _};
use serde::de::{self, MapAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};

pub(crate) use keys::{KEYS, Key};
pub(crate) use layers::{Found, Layers, Place, Rank};
pub(crate) use rule::{
    AccessWord, Condition, ConditionTable, EnforcedWord, ExampleTable, OneOrMore, RuleTable,
    Scalar, VerdictWord,
};

use crate::model::ModelName;

/// The configuration of an agent: its model, its tools, its policy.
///
/// Unknown keys are refused. Paths are relative to the folder of the file.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "tooltape.toml")]
pub(crate) struct Config {
    /// The folder that file tools work in. Default: the folder of the configuration.
    pub(crate) workspace: Option<Workspace>,
    /// The agent that `tooltape run` runs.
    #[serde(default)]
    pub(crate) agent: AgentTable,
    /// Models that the agent's model gives tasks to, by the names of the tools that do.
    pub(crate) sub_agents: Option<BTreeMap<String, SubAgentTable>>,
    /// Which tools there are.
    #[serde(default)]
    pub(crate) tools: ToolsTable,
    /// Who may do what.
    #[serde(default)]
    pub(crate) policy: PolicyTable,
    /// Whom what the workspace holds may come from, and whom it is not for.
    #[serde(default)]
    pub(crate) labels: LabelsTable,
    /// Whom tools may ask on the web.
    #[serde(default)]
    pub(crate) http: HttpTable,
    /// Secrets, by their names: tools that take one have it, and nothing that leaves shows it.
    pub(crate) secrets: Option<BTreeMap<String, SecretTable>>,
}

/// The folder that file tools work in.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Workspace {
    /// This folder itself.
    Folder(String),
    /// A fresh copy of a folder, made for each run under `$XDG_STATE_HOME/tooltape/work/RUN`.
    Copy(CopyTable),
}

/// A folder to copy for each run.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct CopyTable {
    /// The folder to copy.
    pub(crate) copy: String,
}

/// The agent that `tooltape run` runs.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct AgentTable {
    /// The model: `script`, `script:FILE`, `openai:MODEL`, `responses:MODEL`, `anthropic:MODEL`,
    /// `gemini:MODEL`, `mistral:MODEL`, or the address of a server. Default: `script`.
    pub(crate) model: Option<ModelName>,
    /// The script that the model `script` plays; `docs/script-format.md` specifies it.
    pub(crate) script: Option<String>,
    /// What the agent is asked. Default: what the script asks in its first line.
    pub(crate) ask: Option<String>,
    /// What the model is told to hold to in the whole conversation.
    pub(crate) instructions: Option<String>,
    /// The most turns that the model may take. Default: 32.
    pub(crate) turns: Option<NonZeroU32>,
    /// The most tokens that the model may read and write in all. Default: any number.
    pub(crate) tokens: Option<NonZeroU32>,
}

/// A model that the agent's model gives tasks to. It has the tools and the rights of its caller.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct SubAgentTable {
    /// What it is good for, as its caller's model reads it.
    pub(crate) description: String,
    /// Its model, named as `agent.model` is. Default: the agent's own, where that is no script.
    pub(crate) model: Option<ModelName>,
    /// What its model is told to hold to in every task.
    pub(crate) instructions: Option<String>,
    /// The only tools that it has. Default: all of its caller's.
    pub(crate) tools: Option<Vec<String>>,
    /// The most turns that its model may take for a task. Default: 32.
    pub(crate) turns: Option<NonZeroU32>,
    /// The most tokens that its model may read and write for a task. Default: any number.
    pub(crate) tokens: Option<NonZeroU32>,
}

/// Which tools there are.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ToolsTable {
    /// The only tools that there are. Default: all. An empty list means none.
    pub(crate) allow: Option<Vec<String>>,
    /// Tools that there are not, whatever `allow` says. The lists of all layers add up.
    pub(crate) disable: Option<Vec<String>>,
    /// Tools whose writes may overlap those of other tools of this list, and their own.
    pub(crate) promote: Option<Vec<String>>,
    /// What the calls of a tool touch, by its name, whatever the tool itself says.
    pub(crate) touches: Option<BTreeMap<String, TouchesTable>>,
    /// Programs that are tools, each with its manifest beside it; `tooltape tools add` writes them.
    pub(crate) executable: Option<Vec<ExecutableTable>>,
    /// WASM components that are tools; `tooltape tools add` writes them.
    pub(crate) wasm: Option<Vec<WasmTable>>,
}

/// A WASM component that is a tool, or several.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct WasmTable {
    /// The component, or a folder of them. A project's must be in its own folder.
    pub(crate) component: String,
    /// The hash of the component, as it was when somebody looked at it.
    pub(crate) hash: Option<String>,
}

/// A program that is a tool. It runs in the sandbox.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ExecutableTable {
    /// The program. A project's must be in its own folder.
    pub(crate) program: String,
    /// The hash of the program and its manifest, as they were when somebody looked at them.
    pub(crate) hash: Option<String>,
}

/// What the calls of a tool touch, as keys such as `db:customers/{id}`: a domain and a path, in
/// which `{id}` stands for the top-level argument `id`. A key covers what is below it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct TouchesTable {
    /// What a call writes. A tool that writes must have it; an empty list means nothing.
    pub(crate) writes: Option<Vec<String>>,
    /// What a call reads and does not write.
    pub(crate) reads: Option<Vec<String>>,
}

/// Where a secret is read from: one of a variable, a file and a program.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct SecretTable {
    /// The variable of the environment that it is. Only for your own configuration.
    pub(crate) env: Option<String>,
    /// The file that holds it. A project's must be in its own folder.
    pub(crate) file: Option<String>,
    /// The program that prints it, and its arguments; no shell. Only for your own configuration.
    pub(crate) command: Option<Vec<String>>,
    /// How long the program may take, in seconds. Default: 60.
    pub(crate) seconds: Option<NonZeroU32>,
    /// Lets processes use it that never hold it.
    pub(crate) broker: Option<BrokerTable>,
}

/// How processes use a secret that they never hold: the variable holds a token, and only the host
/// gets the secret in its place.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct BrokerTable {
    /// The one host that is told the secret, in header fields of what is asked of it.
    pub(crate) host: String,
    /// The variable of processes that holds the token.
    pub(crate) variable: String,
}

/// Who may do what.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct PolicyTable {
    /// What happens to calls that no rule decides. Default: `ask`.
    pub(crate) default: Option<DefaultWord>,
    /// What runs may do, such as `fs:read:src`; with a `!` before it, what they may not. Default:
    /// what the workspace and the program's own handles allow. A project can only narrow what its
    /// user says.
    pub(crate) rights: Option<Vec<String>>,
    /// Whether calls are asked about whose tool declares nothing, wants a confirmation, or does
    /// what it names no right for, unless a rule of the user names the tool. Default: false. A
    /// project can switch it on, and not off.
    pub(crate) strict: Option<bool>,
    /// Rules, in their order: the first that matches decides, but a `deny` that matches beats all
    /// others. The rules of all layers add up, those of the project before those of the user.
    pub(crate) rules: Option<Vec<RuleTable>>,
}

/// Whom what the workspace holds may come from, and whom it is not for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct LabelsTable {
    /// Folders of the workspace whose files anybody may have written, such as `downloads`. The
    /// lists of all layers add up.
    pub(crate) untrusted: Option<Vec<String>>,
    /// Folders of the workspace whose files are not for everybody. The lists of all layers add up.
    pub(crate) internal: Option<Vec<String>>,
    /// Hosts that may be told what is not public. Only for your own configuration.
    pub(crate) tell: Option<Vec<String>>,
}

/// Whom tools may ask on the web.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct HttpTable {
    /// Hosts that `web_fetch` and processes in the sandbox may ask for pages, such as `docs.rs`,
    /// `*.example.com` or `example.com:80`; the port is 443 where none is named. Also rights to
    /// more than pages, such as `net:any:example.com`. Default: none. A project can only leave
    /// fewer of those that its user names.
    pub(crate) allow: Option<Vec<String>>,
    /// Of these, the ones that may be on this machine or in its own network, each as `host:port`.
    /// Only for your own configuration.
    pub(crate) private: Option<Vec<String>>,
}

/// What happens to calls that no rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum DefaultWord {
    /// Pure and reading calls are allowed; all others ask.
    Ask,
    /// All are allowed, but those whose tool wants a confirmation ask.
    Allow,
    /// All are denied.
    Deny,
}

impl DefaultWord {
    /// How much it holds back.
    pub(crate) fn strictness(self) -> u8 {
        match self {
            DefaultWord::Allow => 0,
            DefaultWord::Ask => 1,
            DefaultWord::Deny => 2,
        }
    }
}

/// The JSON Schema of `tooltape.toml`, as `config.schema.json` holds it.
pub(crate) fn schema() -> serde_json::Value {
    let mut schema = schemars::schema_for!(Config);
    // TOML has no null: an optional key is just not there.
    RecursiveTransform(without_null).transform(&mut schema);
    schema.into()
}

fn without_null(schema: &mut schemars::Schema) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(serde_json::Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".into(), only);
        }
    }
    if let Some(serde_json::Value::Array(branches)) = object.get_mut("anyOf") {
        branches.retain(|branch| branch["type"] != "null");
        if let [serde_json::Value::Object(only)] = branches.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            object.extend(only);
        }
    }
}

// By hand, so that a mistake inside `{ copy = … }` is reported at its place.
impl<'de> Deserialize<'de> for Workspace {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Workspace, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Workspace;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a folder, or `{ copy = \"FOLDER\" }`")
            }

            fn visit_str<E: de::Error>(self, folder: &str) -> Result<Workspace, E> {
                Ok(Workspace::Folder(folder.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Workspace, A::Error> {
                CopyTable::deserialize(MapAccessDeserializer::new(map)).map(Workspace::Copy)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

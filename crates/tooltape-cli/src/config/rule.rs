//! What a rule of `tooltape.toml` may say.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use schemars::JsonSchema;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{self, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tooltape::rule::{Effect, Mark};

/// One rule. It matches a call if everything that it names does.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct RuleTable {
    /// The tool's name.
    pub(crate) tool: Option<String>,
    /// What the tool does to the world.
    pub(crate) access: Option<AccessWord>,
    /// What the tool declares: a word, or a list of which it declares all.
    pub(crate) effect: Option<OneOrMore<Effect>>,
    /// How the tool is held to what it declares, at least: `declaration`, `host`, `sandbox` or
    /// `wasm`.
    pub(crate) enforced_by: Option<EnforcedWord>,
    /// The tool is held to what it declares by less than this.
    pub(crate) enforced_below: Option<EnforcedWord>,
    /// What the label of a call says, of what its model was shown: a word, or a list of which it
    /// says all. Only a rule of the user's that allows so allows despite the label.
    pub(crate) label: Option<OneOrMore<Mark>>,
    /// The hosts that a call asks, by the rights that it needs: one, or a list of which it is any,
    /// such as `api.example.com` or `*.example.com`. A call whose hosts nobody knows never matches
    /// a rule that allows, and always one that asks or denies.
    pub(crate) host: Option<OneOrMore<String>>,
    /// What arguments are like, by a top-level name, or by a JSON pointer in which `*` stands for
    /// every item of a list. What is in doubt never matches a rule that allows, and always one that
    /// asks or denies.
    #[serde(rename = "where")]
    pub(crate) arguments: Option<BTreeMap<String, Condition>>,
    /// What happens to a call that matches.
    pub(crate) verdict: VerdictWord,
    /// What the model reads where the call is denied.
    pub(crate) message: Option<String>,
    /// Calls that the rule must match, or must not. They are tried whenever the file is read.
    pub(crate) examples: Option<Vec<ExampleTable>>,
}

/// What an argument is like.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum Condition {
    /// A glob, which the argument's text, or every text of its list, must match. `*` stays within a
    /// folder, `**` does not. A path that is absolute or contains `..` is in doubt.
    Glob(String),
    /// Everything that it must be.
    All(ConditionTable),
}

/// What an argument is like: all that is named.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ConditionTable {
    /// A path that matches this glob.
    pub(crate) glob: Option<String>,
    /// Exactly this text, number or truth value.
    pub(crate) equals: Option<Scalar>,
    /// Exactly one of these.
    pub(crate) one_of: Option<Vec<Scalar>>,
    /// A number, and no smaller one.
    pub(crate) at_least: Option<Scalar>,
    /// A number, and no larger one.
    pub(crate) at_most: Option<Scalar>,
    /// A text of more characters than this.
    pub(crate) longer_than: Option<usize>,
    /// A text of fewer characters than this.
    pub(crate) shorter_than: Option<usize>,
    /// A host or an HTTP address: of this host, or of any of a list.
    pub(crate) host: Option<OneOrMore<String>>,
}

/// A text, a number or a truth value.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "a text, a number, `true` or `false`")]
pub(crate) enum Scalar {
    Bool(bool),
    Integer(i64),
    Float(f64),
    Text(String),
}

/// One value, or a list of them.
#[derive(Clone, Debug, JsonSchema)]
#[schemars(untagged, rename = "OneOrMoreOf{T}")]
pub(crate) enum OneOrMore<T> {
    One(T),
    More(Vec<T>),
}

impl<T> OneOrMore<T> {
    pub(crate) fn as_slice(&self) -> &[T] {
        match self {
            OneOrMore::One(value) => std::slice::from_ref(value),
            OneOrMore::More(values) => values,
        }
    }
}

/// A call that a rule is tried on.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, expecting = "a table")]
pub(crate) struct ExampleTable {
    /// The tool's name. Default: the rule's own.
    pub(crate) tool: Option<String>,
    /// The arguments. Default: none.
    pub(crate) args: Option<BTreeMap<String, serde_json::Value>>,
    /// The label of what its model was shown. Default: trusted.
    pub(crate) label: Option<OneOrMore<Mark>>,
    /// Whether the rule matches it. Default: true.
    pub(crate) matches: Option<bool>,
}

/// What a tool does to the world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AccessWord {
    /// Neither reads nor changes anything outside its arguments.
    Pure,
    /// Reads, and changes nothing.
    Read,
    /// Changes something.
    Write,
}

/// Who holds a tool to what it declares, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EnforcedWord {
    /// Nobody.
    Declaration,
    /// The program that has the tool.
    Host,
    /// The operating system, in a process of its own.
    Sandbox,
    /// A WASM runtime.
    Wasm,
}

/// What happens to a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum VerdictWord {
    /// It runs.
    Allow,
    /// It runs if a person who is asked says yes.
    Ask,
    /// It does not run.
    Deny,
}

// By hand, so that a mistake inside is reported at its place.
impl<'de> Deserialize<'de> for Condition {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Condition, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Condition;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a glob, or a table such as `{ at_most = 100 }`")
            }

            fn visit_str<E: de::Error>(self, glob: &str) -> Result<Condition, E> {
                Ok(Condition::Glob(glob.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Condition, A::Error> {
                ConditionTable::deserialize(MapAccessDeserializer::new(map)).map(Condition::All)
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for OneOrMore<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<OneOrMore<T>, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = OneOrMore<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, or a list of them")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMore<T>, E> {
                T::deserialize(de::value::StrDeserializer::new(text)).map(OneOrMore::One)
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<OneOrMore<T>, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(seq)).map(OneOrMore::More)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

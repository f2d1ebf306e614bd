//! Schemas as schemars derives them from Rust types.

use std::collections::{BTreeMap, HashSet};

use expect_test::{Expect, expect};
use schemars::{JsonSchema, schema_for};
use serde_json::Value;
use tooltape::dialect::Dialect::{self, AnthropicStrict, Gemini, OpenAiStrict};

use crate::dialect::check;

/// Compiles the schema of a type.
pub(crate) fn check_type<T: JsonSchema>(dialect: Dialect, expected: Expect) {
    check(schema_for!(T).as_value(), dialect, expected);
}

/// Numbers.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Numbers {
    byte: u8,
    word: u32,
    long: u64,
    size: usize,
    signed: i16,
    wide: i64,
    real: f64,
    maybe: Option<u8>,
}

#[test]
fn formats_of_integers_become_bounds() {
    check_type::<Numbers>(
        OpenAiStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "description": "Numbers.",
              "properties": {
                "byte": {"maximum":255,"minimum":0,"type":"integer"},
                "long": {"minimum":0,"type":"integer"},
                "maybe": {"maximum":255,"minimum":0,"type":["integer","null"]},
                "real": {"type":"number"},
                "signed": {"maximum":32767,"minimum":-32768,"type":"integer"},
                "size": {"minimum":0,"type":"integer"},
                "wide": {"type":"integer"},
                "word": {"maximum":4294967295,"minimum":0,"type":"integer"}
              },
              "required": ["byte","long","maybe","real","signed","size","wide","word"],
              "type": "object"
            }
        "#]],
    );
    check_type::<Numbers>(
        Gemini,
        expect![[r#"
            {
              "description": "Numbers.",
              "properties": {
                "byte": {"maximum":255,"minimum":0,"type":"integer"},
                "long": {"minimum":0,"type":"integer"},
                "maybe": {"maximum":255,"minimum":0,"nullable":true,"type":"integer"},
                "real": {"format":"double","type":"number"},
                "signed": {"maximum":32767,"minimum":-32768,"type":"integer"},
                "size": {"minimum":0,"type":"integer"},
                "wide": {"format":"int64","type":"integer"},
                "word": {"maximum":4294967295,"minimum":0,"type":"integer"}
              },
              "required": ["byte","long","real","signed","size","wide","word"],
              "type": "object"
            }
        "#]],
    );
}

/// Lists.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Lists {
    /// Words.
    words: Vec<String>,
    maybe: Option<Vec<String>>,
    holes: Vec<Option<bool>>,
    set: HashSet<char>,
    pair: (String, u8),
    #[serde(default)]
    flags: Vec<bool>,
}

#[test]
fn optional_lists_are_nullable_and_sets_say_so() {
    check_type::<Lists>(
        OpenAiStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "description": "Lists.",
              "properties": {
                "flags": {
                  "description": "default: []",
                  "items": {"type":"boolean"},
                  "type": ["array","null"]
                },
                "holes": {"items":{"type":["boolean","null"]},"type":"array"},
                "maybe": {"items":{"type":"string"},"type":["array","null"]},
                "pair": {
                  "description": "in this order: string, integer",
                  "items": {
                    "anyOf": [{"type":"string"},{"maximum":255,"minimum":0,"type":"integer"}]
                  },
                  "maxItems": 2,
                  "minItems": 2,
                  "type": "array"
                },
                "set": {
                  "description": "uniqueItems: true",
                  "items": {"description":"maxLength: 1; minLength: 1","type":"string"},
                  "type": "array"
                },
                "words": {"description":"Words.","items":{"type":"string"},"type":"array"}
              },
              "required": ["flags","holes","maybe","pair","set","words"],
              "type": "object"
            }
            `default` at `#/properties/flags` moved into the description
            `prefixItems` at `#/properties/pair` moved into the description
            `maxLength` at `#/properties/set/items` moved into the description
            `minLength` at `#/properties/set/items` moved into the description
            `uniqueItems` at `#/properties/set` moved into the description
        "#]],
    );
}

#[test]
fn optional_lists_have_a_flag_and_one_type() {
    check_type::<Lists>(
        Gemini,
        expect![[r#"
            {
              "description": "Lists.",
              "properties": {
                "flags": {
                  "description": "default: []",
                  "items": {"type":"boolean"},
                  "type": "array"
                },
                "holes": {"items":{"nullable":true,"type":"boolean"},"type":"array"},
                "maybe": {"items":{"type":"string"},"nullable":true,"type":"array"},
                "pair": {
                  "description": "in this order: string, integer",
                  "items": {
                    "anyOf": [{"type":"string"},{"maximum":255,"minimum":0,"type":"integer"}]
                  },
                  "maxItems": 2,
                  "minItems": 2,
                  "type": "array"
                },
                "set": {
                  "description": "uniqueItems: true",
                  "items": {"maxLength":1,"minLength":1,"type":"string"},
                  "type": "array"
                },
                "words": {"description":"Words.","items":{"type":"string"},"type":"array"}
              },
              "required": ["holes","pair","set","words"],
              "type": "object"
            }
            `default` at `#/properties/flags` moved into the description
            `prefixItems` at `#/properties/pair` moved into the description
            `uniqueItems` at `#/properties/set` moved into the description
        "#]],
    );
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Tree {
    name: String,
    kids: Vec<Tree>,
    twin: Option<Box<Tree>>,
}

#[test]
fn a_recursive_type_refers_to_the_root() {
    check_type::<Tree>(
        OpenAiStrict,
        expect![[r##"
            {
              "additionalProperties": false,
              "properties": {
                "kids": {"items":{"$ref":"#"},"type":"array"},
                "name": {"type":"string"},
                "twin": {"anyOf":[{"$ref":"#"},{"type":"null"}]}
              },
              "required": ["kids","name","twin"],
              "type": "object"
            }
        "##]],
    );
    check_type::<Tree>(
        AnthropicStrict,
        expect![[r#"
            refused:
            `anthropic-strict` has no recursive types, and `#` is one
        "#]],
    );
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Maps {
    counts: BTreeMap<String, u8>,
    #[serde(default)]
    labels: BTreeMap<String, Option<String>>,
}

#[test]
fn maps_are_lists_of_entries() {
    check_type::<Maps>(
        OpenAiStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "properties": {
                "counts": {
                  "description": "a list of entries, each key once",
                  "items": {
                    "additionalProperties": false,
                    "properties": {
                      "key": {"type":"string"},
                      "value": {"maximum":255,"minimum":0,"type":"integer"}
                    },
                    "required": ["key","value"],
                    "type": "object"
                  },
                  "type": "array"
                },
                "labels": {
                  "description": "a list of entries, each key once; default: {}",
                  "items": {
                    "additionalProperties": false,
                    "properties": {"key":{"type":"string"},"value":{"type":["string","null"]}},
                    "required": ["key","value"],
                    "type": "object"
                  },
                  "type": ["array","null"]
                }
              },
              "required": ["counts","labels"],
              "type": "object"
            }
            `default` at `#/properties/labels` moved into the description
        "#]],
    );
}

#[derive(JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Odds {
    #[schemars(extend("format" = "date-time"))]
    at: String,
    #[schemars(extend("format" = "date"))]
    day: String,
    #[schemars(range(min = 1, max = 5), length(max = 3))]
    stars: Vec<u8>,
    #[schemars(regex(pattern = "^a"))]
    word: String,
    anything: Value,
}

#[test]
fn formats_ranges_patterns_and_any_value() {
    check_type::<Odds>(
        Gemini,
        expect![[r#"
            {
              "properties": {
                "anything": {
                  "anyOf": [
                    {"type":"string"},
                    {"type":"number"},
                    {"type":"boolean"},
                    {"type":"object"},
                    {
                      "items": {
                        "anyOf": [
                          {"type":"string"},
                          {"type":"number"},
                          {"type":"boolean"},
                          {"type":"object"}
                        ]
                      },
                      "type": "array"
                    },
                    {"type":"null"}
                  ]
                },
                "at": {"format":"date-time","type":"string"},
                "day": {"description":"format: \"date\"","type":"string"},
                "stars": {
                  "items": {"maximum":255,"minimum":0,"type":"integer"},
                  "maxItems": 3,
                  "type": "array"
                },
                "word": {"pattern":"^a","type":"string"}
              },
              "required": ["anything","at","day","stars","word"],
              "type": "object"
            }
            `additionalProperties` at `#` dropped
            `type` at `#/properties/anything` narrowed
            `format` at `#/properties/day` moved into the description
        "#]],
    );
    check_type::<Odds>(
        OpenAiStrict,
        expect![[r#"
            refused:
            `openai-strict` wants a type, and `#/properties/anything` has none
        "#]],
    );
}

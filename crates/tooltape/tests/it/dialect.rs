//! One fact about a provider's dialect, one golden test.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::dialect::{Dialect, compile};

use Dialect::{Anthropic, AnthropicStrict, OpenAi, Plain};

/// How wide a value may be before it is broken into lines.
const COLUMNS_MAX: usize = 72;

/// Compiles a schema and compares what comes out: the schema and the losses, or the refusal.
pub(crate) fn check(schema: &Value, dialect: Dialect, expected: Expect) {
    check_at(schema, "", dialect, expected);
}

/// Compiles one property and compares only that, and the losses.
pub(crate) fn check_property(schema: Value, dialect: Dialect, expected: Expect) {
    let schema = json!({ "type": "object", "properties": { "it": schema }, "required": ["it"] });
    check_at(&schema, "/properties/it", dialect, expected);
}

fn check_at(schema: &Value, pointer: &str, dialect: Dialect, expected: Expect) {
    let text = match compile(schema, dialect) {
        Ok(compiled) => {
            let part = compiled.schema().pointer(pointer).expect("the root is an object");
            let losses = compiled.losses().iter().map(|loss| format!("{loss}\n"));
            format!("{}\n{}", show(part, 0), losses.collect::<String>())
        }
        Err(err) => format!("refused:\n{err}\n"),
    };
    expected.assert_eq(&text);
}

/// JSON that is broken into lines only where it is wide.
pub(crate) fn show(value: &Value, indent: usize) -> String {
    let line = value.to_string();
    let (open, close, parts) = match value {
        _ if indent + line.len() <= COLUMNS_MAX => return line,
        Value::Array(items) => {
            ('[', ']', items.iter().map(|item| show(item, indent + 2)).collect::<Vec<_>>())
        }
        Value::Object(map) => {
            let part = |(key, item)| format!("{}: {}", json!(key), show(item, indent + 2));
            ('{', '}', map.iter().map(part).collect::<Vec<_>>())
        }
        _ => return line,
    };
    let inner = " ".repeat(indent + 2);
    let parts = parts.join(&format!(",\n{inner}"));
    format!("{open}\n{inner}{parts}\n{}{close}", " ".repeat(indent))
}

// OpenAI, not strict.

#[test]
fn openai_takes_the_schema_as_it_is() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Args",
        "type": "object",
        "properties": {
            "a": { "type": ["string", "null"], "minLength": 1, "default": null },
            "b": { "oneOf": [{ "$ref": "#/$defs/B" }, { "type": "array", "items": true }] },
        },
        "required": ["a"],
        "additionalProperties": false,
        "$defs": { "B": { "type": "integer", "format": "uint8", "not": { "const": 7 } } },
    });
    let compiled = compile(&schema, OpenAi).unwrap();
    assert_eq!(compiled.schema(), &schema);
    assert_eq!(compiled.losses(), []);
    assert!(!compiled.reshapes());
}

#[test]
fn plain_is_the_schema_as_it_is_whatever_its_root() {
    let schema = json!({ "anyOf": [{ "type": "string" }, { "items": [true], "type": "array" }] });
    assert_eq!(compile(&schema, Plain).unwrap().schema(), &schema);
}

#[test]
fn openai_wants_items_and_properties_to_be_said() {
    check(
        &json!(true),
        OpenAi,
        expect![[r#"
            {"properties":{},"type":"object"}
        "#]],
    );
    check_property(
        json!({ "type": "array" }),
        OpenAi,
        expect![[r#"
            {"items":{},"type":"array"}
        "#]],
    );
}

#[test]
fn openai_refuses_combinations_at_the_root_so_the_root_is_framed() {
    let tagged = json!({
        "description": "What to do.",
        "oneOf": [
            { "type": "object", "properties": { "do": { "const": "a" } }, "required": ["do"] },
            { "$ref": "#/$defs/B" },
            { "$ref": "#/oneOf/0" },
        ],
        "$defs": { "B": { "type": "object", "properties": { "do": { "const": "b" } } } },
    });
    check(
        &tagged,
        OpenAi,
        expect![[r##"
            {
              "$defs": {"B":{"properties":{"do":{"const":"b"}},"type":"object"}},
              "description": "What to do.",
              "properties": {
                "input": {
                  "oneOf": [
                    {
                      "properties": {"do":{"const":"a"}},
                      "required": ["do"],
                      "type": "object"
                    },
                    {"$ref":"#/$defs/B"},
                    {"$ref":"#/properties/input/oneOf/0"}
                  ]
                }
              },
              "required": ["input"],
              "type": "object"
            }
        "##]],
    );
}

#[test]
fn a_constraint_over_the_root_moves_into_its_description() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "type": "string" }, "b": { "type": "string" } },
        "anyOf": [{ "required": ["a"] }, { "required": ["b"] }],
        "description": "Finds one.",
    });
    check(
        &schema,
        OpenAi,
        expect![[r#"
            {
              "description": "Finds one. (anyOf: [{\"required\":[\"a\"]},{\"required\":[\"b\"]}])",
              "properties": {"a":{"type":"string"},"b":{"type":"string"}},
              "type": "object"
            }
            `anyOf` at `#` moved into the description
        "#]],
    );
    check(
        &schema,
        AnthropicStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "description": "Finds one. (anyOf: [{\"required\":[\"a\"]},{\"required\":[\"b\"]}])",
              "properties": {"a":{"type":"string"},"b":{"type":"string"}},
              "type": "object"
            }
            `anyOf` at `#` moved into the description
        "#]],
    );
}

// Anthropic, not strict.

#[test]
fn anthropic_takes_2020_12_so_older_spellings_are_translated() {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "pair": {
                "type": "array",
                "items": [{ "type": "string" }, { "type": "integer" }],
                "additionalItems": false,
            },
            "share": { "type": "number", "minimum": 0, "exclusiveMinimum": true },
        },
    });
    check(
        &schema,
        Anthropic,
        expect![[r#"
            {
              "properties": {
                "pair": {
                  "items": false,
                  "prefixItems": [{"type":"string"},{"type":"integer"}],
                  "type": "array"
                },
                "share": {"exclusiveMinimum":0,"type":"number"}
              },
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn anthropic_refuses_combinations_at_the_root_so_the_root_is_framed() {
    let schema = json!({ "allOf": [{ "$ref": "#/$defs/A" }], "$defs": { "A": true } });
    check(
        &schema,
        Anthropic,
        expect![[r##"
            {
              "$defs": {"A":true},
              "properties": {"input":{"allOf":[{"$ref":"#/$defs/A"}]}},
              "required": ["input"],
              "type": "object"
            }
        "##]],
    );
}

#[test]
fn anthropic_refuses_some_property_names_so_they_are_renamed() {
    let schema = json!({
        "type": "object",
        "properties": { "filter[id]": true, "filter_id_": true, "a.b-c": true, "": true },
        "required": ["filter[id]"],
    });
    check(
        &schema,
        Anthropic,
        expect![[r#"
            {
              "properties": {"_":true,"a.b-c":true,"filter_id_":true,"filter_id__2":true},
              "required": ["filter_id__2"],
              "type": "object"
            }
        "#]],
    );
}

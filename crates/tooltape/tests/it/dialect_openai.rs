//! What OpenAI's strict mode takes, fact by fact.

use expect_test::expect;
use serde_json::json;
use tooltape::dialect::{Dialect::OpenAiStrict, compile};

use crate::dialect::{check, check_property};

#[test]
fn every_property_is_required_and_absence_is_null() {
    let schema = json!({
        "type": "object",
        "properties": {
            "needed": { "type": "string" },
            "word": { "type": "string", "description": "A word." },
            "nullable": { "type": ["string", "null"] },
            "listed": { "enum": ["a", "b"] },
            "fixed": { "const": 1, "description": "One." },
            "shared": { "$ref": "#/$defs/Shared" },
            "either": { "anyOf": [{ "type": "string" }, { "type": "integer" }] },
        },
        "required": ["needed"],
        "$defs": { "Shared": { "type": "boolean" } },
    });
    check(
        &schema,
        OpenAiStrict,
        expect![[r##"
            {
              "$defs": {"Shared":{"type":"boolean"}},
              "additionalProperties": false,
              "properties": {
                "either": {"anyOf":[{"type":"string"},{"type":"integer"},{"type":"null"}]},
                "fixed": {
                  "anyOf": [{"const":1,"type":"integer"},{"type":"null"}],
                  "description": "One."
                },
                "listed": {"enum":["a","b",null],"type":["string","null"]},
                "needed": {"type":"string"},
                "nullable": {"type":["string","null"]},
                "shared": {"anyOf":[{"$ref":"#/$defs/Shared"},{"type":"null"}]},
                "word": {"description":"A word.","type":["string","null"]}
              },
              "required": ["either","fixed","listed","needed","nullable","shared","word"],
              "type": "object"
            }
        "##]],
    );
}

#[test]
fn every_object_is_closed() {
    let schema = json!({
        "type": "object",
        "properties": {
            "inner": { "type": "object", "properties": {}, "additionalProperties": true },
        },
        "additionalProperties": true,
    });
    check(
        &schema,
        OpenAiStrict,
        expect![[r#"
            refused:
            `openai-strict` takes only declared properties, and `#/properties/inner` declares none
        "#]],
    );
    let schema = json!({
        "type": "object",
        "properties": { "a": { "properties": { "b": { "type": "string" } }, "required": ["b"] } },
        "required": ["a"],
        "additionalProperties": { "type": "string" },
    });
    check(
        &schema,
        OpenAiStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "properties": {
                "a": {
                  "additionalProperties": false,
                  "properties": {"b":{"type":"string"}},
                  "required": ["b"],
                  "type": "object"
                }
              },
              "required": ["a"],
              "type": "object"
            }
            `additionalProperties` at `#` narrowed
        "#]],
    );
}

#[test]
fn an_object_that_forbids_all_properties_declares_none() {
    let empty = json!({ "type": "object", "additionalProperties": false });
    check_property(
        empty,
        OpenAiStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "properties": {},
              "required": [],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn string_patterns_and_nine_formats_stay() {
    let formats =
        ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];
    for format in formats {
        let schema = json!({
            "type": "object",
            "properties": { "it": { "type": "string", "format": format, "pattern": "^a+$" } },
            "required": ["it"],
            "additionalProperties": false,
        });
        assert_eq!(compile(&schema, OpenAiStrict).unwrap().schema(), &schema);
    }
    check_property(
        json!({ "type": "string", "format": "uri" }),
        OpenAiStrict,
        expect![[r#"
            {"description":"format: \"uri\"","type":"string"}
            `format` at `#/properties/it` moved into the description
        "#]],
    );
    let looking = json!({ "type": "string", "pattern": "^(?!x)", "description": "Not x." });
    check_property(
        looking,
        OpenAiStrict,
        expect![[r#"
            {"description":"Not x. (pattern: \"^(?!x)\")","type":"string"}
            `pattern` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn lengths_and_defaults_move_into_the_description() {
    let schema = json!({
        "type": "string", "minLength": 1, "maxLength": 9, "default": "a", "description": "A word.",
    });
    check_property(
        schema,
        OpenAiStrict,
        expect![[r#"
            {
              "description": "A word. (default: \"a\"; maxLength: 9; minLength: 1)",
              "type": "string"
            }
            `default` at `#/properties/it` moved into the description
            `maxLength` at `#/properties/it` moved into the description
            `minLength` at `#/properties/it` moved into the description
        "#]],
    );
    let silent = json!({ "type": ["string", "null"], "default": null });
    check_property(
        silent,
        OpenAiStrict,
        expect![[r#"
            {"type":["string","null"]}
        "#]],
    );
}

#[test]
fn bounds_of_numbers_and_lists_stay() {
    let number = json!({
        "type": "number", "minimum": 0, "exclusiveMaximum": 1, "multipleOf": 0.25,
    });
    check_property(
        number,
        OpenAiStrict,
        expect![[r#"
            {"exclusiveMaximum":1,"minimum":0,"multipleOf":0.25,"type":"number"}
        "#]],
    );
    let list = json!({
        "type": "array", "items": { "type": "integer", "maximum": 9 },
        "minItems": 2, "maxItems": 4, "uniqueItems": true,
    });
    check_property(
        list,
        OpenAiStrict,
        expect![[r#"
            {
              "description": "uniqueItems: true",
              "items": {"maximum":9,"type":"integer"},
              "maxItems": 4,
              "minItems": 2,
              "type": "array"
            }
            `uniqueItems` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn alternatives_become_any_of() {
    let exclusive = json!({ "oneOf": [{ "type": "string" }, { "type": "integer" }] });
    check_property(
        exclusive,
        OpenAiStrict,
        expect![[r#"
            {"anyOf":[{"type":"string"},{"type":"integer"}]}
        "#]],
    );
    let overlapping = json!({ "oneOf": [
        { "type": "number", "multipleOf": 3 },
        { "type": "integer", "multipleOf": 5 },
    ] });
    check_property(
        overlapping,
        OpenAiStrict,
        expect![[r#"
            {
              "anyOf": [{"multipleOf":3,"type":"number"},{"multipleOf":5,"type":"integer"}]
            }
            `oneOf` at `#/properties/it` widened
        "#]],
    );
    let types = json!({ "type": ["string", "integer", "null"], "minLength": 1, "minimum": 0 });
    check_property(
        types,
        OpenAiStrict,
        expect![[r#"
            {
              "anyOf": [
                {"description":"minLength: 1","type":"string"},
                {"minimum":0,"type":"integer"},
                {"type":"null"}
              ]
            }
            `minLength` at `#/properties/it/anyOf/0` moved into the description
        "#]],
    );
}

#[test]
fn what_stands_beside_alternatives_joins_each_of_them() {
    let schema = json!({
        "type": "object",
        "properties": { "id": { "type": "string" } },
        "required": ["id"],
        "oneOf": [
            { "properties": { "kind": { "const": "a" } }, "required": ["kind"] },
            { "properties": { "kind": { "const": "b" } }, "required": ["kind"] },
        ],
    });
    check_property(
        schema,
        OpenAiStrict,
        expect![[r#"
            {
              "anyOf": [
                {
                  "additionalProperties": false,
                  "properties": {"id":{"type":"string"},"kind":{"const":"a","type":"string"}},
                  "required": ["id","kind"],
                  "type": "object"
                },
                {
                  "additionalProperties": false,
                  "properties": {"id":{"type":"string"},"kind":{"const":"b","type":"string"}},
                  "required": ["id","kind"],
                  "type": "object"
                }
              ]
            }
        "#]],
    );
}

#[test]
fn all_of_becomes_one_schema() {
    let schema = json!({ "allOf": [
        { "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"] },
        { "properties": { "a": { "pattern": "^x" }, "b": { "enum": [1, 2] } }, "required": ["b"] },
        { "properties": { "b": { "enum": [2, 3] } } },
    ] });
    check_property(
        schema,
        OpenAiStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "properties": {
                "a": {"pattern":"^x","type":"string"},
                "b": {"enum":[2],"type":"integer"}
              },
              "required": ["a","b"],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn unsupported_combinations_move_into_the_description() {
    let combinations = [
        ("not", json!({ "required": ["b"] })),
        ("if", json!({ "required": ["b"] })),
        ("then", json!({ "minProperties": 2 })),
        ("else", json!({ "maxProperties": 3 })),
        ("dependentRequired", json!({ "a": ["b"] })),
        ("dependentSchemas", json!({ "a": { "minProperties": 1 } })),
    ];
    for (keyword, value) in combinations {
        let object = json!({
            "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a"],
            "description": "An a.", keyword: value,
        });
        let compiled = compile(&object, OpenAiStrict).unwrap();
        let description = format!("An a. ({keyword}: {value})");
        assert_eq!(compiled.schema()["description"], json!(description));
        assert_eq!(compiled.schema().get(keyword), None);
        let loss = format!("`{keyword}` at `#` moved into the description");
        assert_eq!(compiled.losses().iter().map(ToString::to_string).collect::<Vec<_>>(), [loss]);
    }
}

#[test]
fn what_is_too_long_for_a_description_is_dropped() {
    let text = json!({ "type": "string", "pattern": format!("^(?!{})", "x".repeat(300)) });
    check_property(
        text,
        OpenAiStrict,
        expect![[r#"
            {"type":"string"}
            `pattern` at `#/properties/it` dropped
        "#]],
    );
}

#[test]
fn a_map_is_a_list_of_entries() {
    let map = json!({
        "type": "object",
        "additionalProperties": { "type": "integer" },
        "propertyNames": { "pattern": "^[a-z]+$" },
        "minProperties": 1,
        "description": "Counts.",
    });
    check_property(
        map,
        OpenAiStrict,
        expect![[r#"
            {
              "description": "Counts. (a list of entries, each key once)",
              "items": {
                "additionalProperties": false,
                "properties": {
                  "key": {"pattern":"^[a-z]+$","type":"string"},
                  "value": {"type":"integer"}
                },
                "required": ["key","value"],
                "type": "object"
              },
              "minItems": 1,
              "type": "array"
            }
        "#]],
    );
    let patterned = json!({ "patternProperties": { "^x-": { "type": "string" } } });
    check_property(
        patterned,
        OpenAiStrict,
        expect![[r#"
            {
              "description": "a list of entries, each key once",
              "items": {
                "additionalProperties": false,
                "properties": {"key":{"pattern":"^x-","type":"string"},"value":{"type":"string"}},
                "required": ["key","value"],
                "type": "object"
              },
              "type": "array"
            }
        "#]],
    );
}

#[test]
fn what_has_no_type_is_refused() {
    check_property(
        json!({}),
        OpenAiStrict,
        expect![[r#"
            refused:
            `openai-strict` wants a type, and `#/properties/it` has none
        "#]],
    );
    check_property(
        json!({ "type": "array" }),
        OpenAiStrict,
        expect![[r#"
            refused:
            `openai-strict` wants a type, and `#/properties/it/items` has none
        "#]],
    );
    check_property(
        json!({ "type": "object" }),
        OpenAiStrict,
        expect![[r#"
            refused:
            `openai-strict` takes only declared properties, and `#/properties/it` declares none
        "#]],
    );
    let open = json!({ "type": "object", "additionalProperties": {} });
    check_property(
        open,
        OpenAiStrict,
        expect![[r#"
            refused:
            `openai-strict` takes only declared properties, and `#/properties/it` declares none
        "#]],
    );
    check_property(
        json!({ "required": ["a"] }),
        OpenAiStrict,
        expect![[r#"
            refused:
            `openai-strict` wants a type, and `#/properties/it/properties/a` has none
        "#]],
    );
}

//! What Anthropic's strict mode takes, fact by fact.

use expect_test::expect;
use serde_json::json;
use tooltape::dialect::Dialect::AnthropicStrict;

use crate::dialect::{check, check_property};

#[test]
fn objects_are_closed_and_properties_may_be_absent() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": { "type": "string" },
            "b": { "type": "object", "properties": { "c": { "type": ["integer", "null"] } } },
        },
        "required": ["a"],
    });
    check(
        &schema,
        AnthropicStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "properties": {
                "a": {"type":"string"},
                "b": {
                  "additionalProperties": false,
                  "properties": {"c":{"type":["integer","null"]}},
                  "type": "object"
                }
              },
              "required": ["a"],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn bounds_of_numbers_and_lengths_move_into_the_description() {
    let number = json!({
        "type": "number", "minimum": 0, "maximum": 1, "multipleOf": 0.5, "description": "A share.",
    });
    check_property(
        number,
        AnthropicStrict,
        expect![[r#"
            {
              "description": "A share. (maximum: 1; minimum: 0; multipleOf: 0.5)",
              "type": "number"
            }
            `maximum` at `#/properties/it` moved into the description
            `minimum` at `#/properties/it` moved into the description
            `multipleOf` at `#/properties/it` moved into the description
        "#]],
    );
    let text = json!({ "type": "string", "minLength": 1, "maxLength": 3 });
    check_property(
        text,
        AnthropicStrict,
        expect![[r#"
            {"description":"maxLength: 3; minLength: 1","type":"string"}
            `maxLength` at `#/properties/it` moved into the description
            `minLength` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn a_list_may_demand_one_item_at_most() {
    let some = json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 });
    check_property(
        some,
        AnthropicStrict,
        expect![[r#"
            {"items":{"type":"string"},"minItems":1,"type":"array"}
        "#]],
    );
    let more = json!({
        "type": "array", "items": { "type": "string" }, "minItems": 2, "maxItems": 3,
    });
    check_property(
        more,
        AnthropicStrict,
        expect![[r#"
            {
              "description": "maxItems: 3; minItems: 2",
              "items": {"type":"string"},
              "type": "array"
            }
            `maxItems` at `#/properties/it` moved into the description
            `minItems` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn recursive_types_and_foreign_references_are_refused() {
    let recursive = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
    check(
        &recursive,
        AnthropicStrict,
        expect![[r#"
            refused:
            `anthropic-strict` has no recursive types, and `#` is one
        "#]],
    );
    let foreign = json!({ "$ref": "https://example.com/a" });
    check_property(
        foreign,
        AnthropicStrict,
        expect![[r#"
            refused:
            `$ref` to `https://example.com/a` leaves the document, expected `#` or `#/…`
        "#]],
    );
}

#[test]
fn enums_are_of_plain_values() {
    check_property(
        json!({ "enum": ["a", 1, null] }),
        AnthropicStrict,
        expect![[r#"
            {
              "anyOf": [
                {"enum":["a"],"type":"string"},
                {"enum":[1],"type":"integer"},
                {"type":"null"}
              ]
            }
        "#]],
    );
    check_property(
        json!({ "type": "array", "items": { "type": "string" }, "enum": [["a"], ["b"]] }),
        AnthropicStrict,
        expect![[r#"
            {
              "description": "enum: [[\"a\"],[\"b\"]]",
              "items": {"type":"string"},
              "type": "array"
            }
            `enum` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn all_of_with_references_becomes_one_schema() {
    let schema = json!({
        "type": "object",
        "properties": { "it": { "allOf": [{ "$ref": "#/$defs/A" }, { "$ref": "#/$defs/B" }] } },
        "required": ["it"],
        "$defs": {
            "A": { "type": "object", "properties": { "a": { "type": "string" } } },
            "B": { "type": "object", "properties": { "b": { "type": "string" } } },
        },
    });
    check(
        &schema,
        AnthropicStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "properties": {
                "it": {
                  "additionalProperties": false,
                  "properties": {"a":{"type":"string"},"b":{"type":"string"}},
                  "type": "object"
                }
              },
              "required": ["it"],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn const_default_and_pattern_are_not_relied_on() {
    check_property(
        json!({ "const": "a" }),
        AnthropicStrict,
        expect![[r#"
            {"enum":["a"],"type":"string"}
        "#]],
    );
    let text = json!({ "type": "string", "pattern": "^a", "default": "a" });
    check_property(
        text,
        AnthropicStrict,
        expect![[r#"
            {"description":"default: \"a\"; pattern: \"^a\"","type":"string"}
            `default` at `#/properties/it` moved into the description
            `pattern` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn formats_that_the_vendor_lists_stay() {
    check_property(
        json!({ "type": "string", "format": "uri" }),
        AnthropicStrict,
        expect![[r#"
            {"format":"uri","type":"string"}
        "#]],
    );
    check_property(
        json!({ "type": "string", "format": "json" }),
        AnthropicStrict,
        expect![[r#"
            {"description":"format: \"json\"","type":"string"}
            `format` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn shared_types_stay_shared() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/A" }, "b": { "$ref": "#/$defs/A" } },
        "required": ["a", "b"],
        "$defs": { "A": { "type": "string" }, "Unused": { "type": "string" } },
    });
    check(
        &schema,
        AnthropicStrict,
        expect![[r##"
            {
              "$defs": {"A":{"type":"string"}},
              "additionalProperties": false,
              "properties": {"a":{"$ref":"#/$defs/A"},"b":{"$ref":"#/$defs/A"}},
              "required": ["a","b"],
              "type": "object"
            }
        "##]],
    );
}

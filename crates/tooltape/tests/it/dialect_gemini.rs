//! What Gemini's `parameters` take, fact by fact.

use expect_test::expect;
use serde_json::json;
use tooltape::dialect::Dialect::Gemini;

use crate::dialect::{check, check_property};

#[test]
fn a_list_of_types_is_one_type_and_a_flag() {
    let schema = json!({ "type": ["string", "null"], "description": "A word." });
    check_property(
        schema,
        Gemini,
        expect![[r#"
            {"description":"A word.","nullable":true,"type":"string"}
        "#]],
    );
    let schema = json!({ "type": ["array", "null"], "items": { "type": "string" } });
    check_property(
        schema,
        Gemini,
        expect![[r#"
            {"items":{"type":"string"},"nullable":true,"type":"array"}
        "#]],
    );
    let schema = json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] });
    check_property(
        schema,
        Gemini,
        expect![[r#"
            {"nullable":true,"type":"integer"}
        "#]],
    );
}

#[test]
fn several_types_are_alternatives_with_nothing_beside_them() {
    let schema = json!({
        "type": ["string", "integer", "null"],
        "title": "Id",
        "description": "An id.",
        "minLength": 1,
        "minimum": 0,
    });
    check_property(
        schema,
        Gemini,
        expect![[r#"
            {
              "anyOf": [
                {"description":"An id.","minLength":1,"title":"Id","type":"string"},
                {"minimum":0,"type":"integer"},
                {"type":"null"}
              ]
            }
        "#]],
    );
}

#[test]
fn an_enum_is_of_strings() {
    check_property(
        json!({ "enum": ["a", "b", null] }),
        Gemini,
        expect![[r#"
            {"enum":["a","b"],"nullable":true,"type":"string"}
        "#]],
    );
    check_property(
        json!({ "const": "a" }),
        Gemini,
        expect![[r#"
            {"enum":["a"],"type":"string"}
        "#]],
    );
    check_property(
        json!({ "type": "integer", "enum": [1, 2] }),
        Gemini,
        expect![[r#"
            {"description":"enum: [1,2]","type":"integer"}
            `enum` at `#/properties/it` moved into the description
        "#]],
    );
    check_property(
        json!({ "enum": ["", "a"], "description": "Mode." }),
        Gemini,
        expect![[r#"
            {"description":"Mode. (enum: [\"\",\"a\"])","type":"string"}
            `enum` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn what_the_library_has_and_the_api_refused_is_left_out() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Args",
        "type": "object",
        "properties": { "a": { "type": "integer", "default": 3, "description": "A number." } },
        "additionalProperties": false,
    });
    check(
        &schema,
        Gemini,
        expect![[r#"
            {
              "properties": {"a":{"description":"A number. (default: 3)","type":"integer"}},
              "type": "object"
            }
            `additionalProperties` at `#` dropped
            `default` at `#/properties/a` moved into the description
        "#]],
    );
}

#[test]
fn what_no_field_exists_for_moves_into_the_description() {
    let text = json!({ "type": "string", "format": "uri", "examples": ["a:b"], "x-order": 3 });
    check_property(
        text,
        Gemini,
        expect![[r#"
            {"description":"examples: [\"a:b\"]; format: \"uri\"","type":"string"}
            `examples` at `#/properties/it` moved into the description
            `format` at `#/properties/it` moved into the description
            `x-order` at `#/properties/it` dropped
        "#]],
    );
    let number = json!({ "type": "number", "exclusiveMinimum": 0, "multipleOf": 0.5 });
    check_property(
        number,
        Gemini,
        expect![[r#"
            {
              "description": "exclusiveMinimum: 0; multipleOf: 0.5",
              "minimum": 0,
              "type": "number"
            }
            `exclusiveMinimum` at `#/properties/it` moved into the description
            `multipleOf` at `#/properties/it` moved into the description
        "#]],
    );
    let list = json!({ "type": "array", "items": { "type": "string" }, "uniqueItems": true });
    check_property(
        list,
        Gemini,
        expect![[r#"
            {
              "description": "uniqueItems: true",
              "items": {"type":"string"},
              "type": "array"
            }
            `uniqueItems` at `#/properties/it` moved into the description
        "#]],
    );
}

#[test]
fn fields_that_exist_stay() {
    let text = json!({
        "type": "string", "minLength": 1, "maxLength": 5, "pattern": "^a", "format": "date-time",
        "title": "Word", "example": "a",
    });
    check_property(
        text,
        Gemini,
        expect![[r#"
            {
              "example": "a",
              "format": "date-time",
              "maxLength": 5,
              "minLength": 1,
              "pattern": "^a",
              "title": "Word",
              "type": "string"
            }
        "#]],
    );
    let number = json!({ "type": "integer", "format": "int32", "minimum": 1, "maximum": 5 });
    check_property(
        number,
        Gemini,
        expect![[r#"
            {"format":"int32","maximum":5,"minimum":1,"type":"integer"}
        "#]],
    );
    let list = json!({
        "type": "array", "items": { "type": "boolean" }, "minItems": 1, "maxItems": 2,
    });
    check_property(
        list,
        Gemini,
        expect![[r#"
            {"items":{"type":"boolean"},"maxItems":2,"minItems":1,"type":"array"}
        "#]],
    );
    let object = json!({
        "type": "object", "properties": { "a": { "type": "string" } }, "required": ["a", "b"],
        "minProperties": 1, "maxProperties": 2,
    });
    check_property(
        object,
        Gemini,
        expect![[r#"
            {
              "maxProperties": 2,
              "minProperties": 1,
              "properties": {"a":{"type":"string"}},
              "required": ["a"],
              "type": "object"
            }
            `required` at `#/properties/it` dropped
        "#]],
    );
}

#[test]
fn a_bound_of_integers_that_excludes_itself_becomes_the_next_integer() {
    let schema = json!({ "type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 10 });
    check_property(
        schema,
        Gemini,
        expect![[r#"
            {"maximum":9,"minimum":1,"type":"integer"}
        "#]],
    );
}

#[test]
fn references_are_opened_and_recursive_types_once() {
    let schema = json!({
        "type": "object",
        "properties": {
            "place": { "$ref": "#/$defs/Place", "description": "Where." },
            "tree": { "$ref": "#/$defs/Tree" },
        },
        "$defs": {
            "Place": { "type": "string", "description": "A place." },
            "Tree": {
                "type": "object",
                "properties": { "kids": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } },
            },
        },
    });
    check(
        &schema,
        Gemini,
        expect![[r#"
            {
              "properties": {
                "place": {"description":"Where.","type":"string"},
                "tree": {
                  "properties": {
                    "kids": {
                      "items": {
                        "description": "the same shape as an object around it",
                        "type": "object"
                      },
                      "type": "array"
                    }
                  },
                  "type": "object"
                }
              },
              "type": "object"
            }
            `$ref` at `#/$defs/Tree/properties/kids/items` widened
        "#]],
    );
}

#[test]
fn a_recursive_type_that_is_no_object_may_be_of_any_type_inside() {
    let schema = json!({
        "type": "object",
        "properties": { "json": { "$ref": "#/$defs/Json" } },
        "$defs": { "Json": { "anyOf": [
            { "type": "string" },
            { "type": "array", "items": { "$ref": "#/$defs/Json" } },
        ] } },
    });
    check(
        &schema,
        Gemini,
        expect![[r#"
            {
              "properties": {
                "json": {
                  "anyOf": [
                    {"type":"string"},
                    {
                      "items": {
                        "anyOf": [
                          {
                            "description": "the same shape as a value around it",
                            "type": "string"
                          },
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
                      "type": "array"
                    }
                  ]
                }
              },
              "type": "object"
            }
            `$ref` at `#/$defs/Json/anyOf/1/items` widened
        "#]],
    );
}

#[test]
fn parameter_names_are_identifiers() {
    let schema = json!({
        "type": "object",
        "properties": {
            "año": { "type": "string" },
            "2nd": { "type": "string" },
            "user-id": { "type": "string" },
            "user_id": { "type": "string" },
        },
        "required": ["user-id"],
    });
    check(
        &schema,
        Gemini,
        expect![[r#"
            {
              "properties": {
                "_2nd": {"type":"string"},
                "a_o": {"type":"string"},
                "user_id": {"type":"string"},
                "user_id_2": {"type":"string"}
              },
              "required": ["user_id_2"],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn what_has_no_type_may_be_of_any() {
    check_property(
        json!({ "description": "Whatever." }),
        Gemini,
        expect![[r#"
            {
              "anyOf": [
                {"description":"Whatever.","type":"string"},
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
            }
            `type` at `#/properties/it` narrowed
        "#]],
    );
    check_property(
        json!({ "type": "object" }),
        Gemini,
        expect![[r#"
            {"type":"object"}
        "#]],
    );
}

#[test]
fn a_map_is_a_list_of_entries() {
    let map = json!({ "type": "object", "additionalProperties": { "type": "integer" } });
    check_property(
        map,
        Gemini,
        expect![[r#"
            {
              "description": "a list of entries, each key once",
              "items": {
                "properties": {"key":{"type":"string"},"value":{"type":"integer"}},
                "required": ["key","value"],
                "type": "object"
              },
              "type": "array"
            }
        "#]],
    );
}

//! Enums as schemars derives their schemas.

use expect_test::expect;
use schemars::{JsonSchema, schema_for};
use tooltape::dialect::Dialect::{self, AnthropicStrict, Gemini, OpenAi, OpenAiStrict};
use tooltape::dialect::compile;

use crate::dialect_schemars::check_type;

/// What to do.
#[derive(JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
#[allow(dead_code, reason = "only its schema is of interest")]
enum Command {
    /// Moves.
    Move { x: i32, y: Option<i32> },
    /// Stops.
    Stop,
}

#[test]
fn a_tagged_enum_as_root_stands_in_an_object() {
    check_type::<Command>(
        OpenAi,
        expect![[r#"
            {
              "$schema": "https://json-schema.org/draft/2020-12/schema",
              "description": "What to do.",
              "properties": {
                "input": {
                  "oneOf": [
                    {
                      "description": "Moves.",
                      "properties": {
                        "kind": {"const":"move","type":"string"},
                        "x": {"format":"int32","type":"integer"},
                        "y": {"format":"int32","type":["integer","null"]}
                      },
                      "required": ["kind","x"],
                      "type": "object"
                    },
                    {
                      "description": "Stops.",
                      "properties": {"kind":{"const":"stop","type":"string"}},
                      "required": ["kind"],
                      "type": "object"
                    }
                  ],
                  "title": "Command"
                }
              },
              "required": ["input"],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn a_strict_tagged_enum_as_root_is_any_of() {
    check_type::<Command>(
        OpenAiStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "description": "What to do.",
              "properties": {
                "input": {
                  "anyOf": [
                    {
                      "additionalProperties": false,
                      "description": "Moves.",
                      "properties": {
                        "kind": {"const":"move","type":"string"},
                        "x": {
                          "maximum": 2147483647,
                          "minimum": -2147483648,
                          "type": "integer"
                        },
                        "y": {
                          "maximum": 2147483647,
                          "minimum": -2147483648,
                          "type": ["integer","null"]
                        }
                      },
                      "required": ["kind","x","y"],
                      "type": "object"
                    },
                    {
                      "additionalProperties": false,
                      "description": "Stops.",
                      "properties": {"kind":{"const":"stop","type":"string"}},
                      "required": ["kind"],
                      "type": "object"
                    }
                  ]
                }
              },
              "required": ["input"],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn a_tagged_enum_as_root_is_taken_out_of_its_object() {
    let schema = schema_for!(Command);
    for dialect in [OpenAi, OpenAiStrict, Dialect::Anthropic, AnthropicStrict, Gemini] {
        let compiled = compile(schema.as_value(), dialect).unwrap();
        let written = r#"{"input":{"kind":"move","x":1,"y":null}}"#;
        assert_eq!(compiled.restore(written), r#"{"kind":"move","x":1,"y":null}"#, "{dialect}");
    }
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
enum Shape {
    Point,
    Line,
    Circle(f64),
    Box { w: f64, h: f64 },
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
enum Level {
    /// A little.
    Low,
    /// A lot.
    High,
}

#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Drawing {
    /// The shape.
    shape: Shape,
    /// How much.
    level: Option<Level>,
}

#[test]
fn enums_inside_stay_enums() {
    check_type::<Drawing>(
        AnthropicStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "properties": {
                "level": {
                  "description": "How much. (\"Low\": A little.; \"High\": A lot.)",
                  "enum": ["Low","High",null],
                  "type": ["string","null"]
                },
                "shape": {
                  "anyOf": [
                    {"enum":["Point","Line"],"type":"string"},
                    {
                      "additionalProperties": false,
                      "properties": {"Circle":{"type":"number"}},
                      "required": ["Circle"],
                      "type": "object"
                    },
                    {
                      "additionalProperties": false,
                      "properties": {
                        "Box": {
                          "additionalProperties": false,
                          "properties": {"h":{"type":"number"},"w":{"type":"number"}},
                          "required": ["h","w"],
                          "type": "object"
                        }
                      },
                      "required": ["Box"],
                      "type": "object"
                    }
                  ],
                  "description": "The shape."
                }
              },
              "required": ["shape"],
              "type": "object"
            }
        "#]],
    );
}

#[test]
fn enums_inside_have_nothing_beside_them() {
    check_type::<Drawing>(
        Gemini,
        expect![[r#"
            {
              "properties": {
                "level": {
                  "description": "How much. (\"Low\": A little.; \"High\": A lot.)",
                  "enum": ["Low","High"],
                  "nullable": true,
                  "type": "string"
                },
                "shape": {
                  "anyOf": [
                    {
                      "description": "The shape.",
                      "enum": ["Point","Line"],
                      "type": "string"
                    },
                    {
                      "properties": {"Circle":{"format":"double","type":"number"}},
                      "required": ["Circle"],
                      "type": "object"
                    },
                    {
                      "properties": {
                        "Box": {
                          "properties": {
                            "h": {"format":"double","type":"number"},
                            "w": {"format":"double","type":"number"}
                          },
                          "required": ["h","w"],
                          "type": "object"
                        }
                      },
                      "required": ["Box"],
                      "type": "object"
                    }
                  ]
                }
              },
              "required": ["shape"],
              "type": "object"
            }
            `additionalProperties` at `#/properties/shape/oneOf/1` dropped
            `additionalProperties` at `#/properties/shape/oneOf/2` dropped
        "#]],
    );
}

/// Shared.
#[derive(JsonSchema)]
#[allow(dead_code, reason = "only its schema is of interest")]
struct Flat {
    id: String,
    #[serde(flatten)]
    command: Command,
}

#[test]
fn a_flattened_enum_joins_what_stands_beside_it() {
    check_type::<Flat>(
        AnthropicStrict,
        expect![[r#"
            {
              "additionalProperties": false,
              "description": "Shared.",
              "properties": {
                "input": {
                  "anyOf": [
                    {
                      "additionalProperties": false,
                      "description": "Moves.",
                      "properties": {
                        "id": {"type":"string"},
                        "kind": {"enum":["move"],"type":"string"},
                        "x": {"description":"format: \"int32\"","type":"integer"},
                        "y": {
                          "description": "format: \"int32\"",
                          "type": ["integer","null"]
                        }
                      },
                      "required": ["id","kind","x"],
                      "type": "object"
                    },
                    {
                      "additionalProperties": false,
                      "description": "Stops.",
                      "properties": {
                        "id": {"type":"string"},
                        "kind": {"enum":["stop"],"type":"string"}
                      },
                      "required": ["id","kind"],
                      "type": "object"
                    }
                  ]
                }
              },
              "required": ["input"],
              "type": "object"
            }
            `format` at `#/oneOf/0/properties/x` moved into the description
            `format` at `#/oneOf/0/properties/y` moved into the description
        "#]],
    );
}

//! References: shared, opened, recursive, or leading nowhere.

use expect_test::expect;
use serde_json::{Map, Value, json};
use tooltape::dialect::{DEPTH_MAX, Dialect, REFERENCES_MAX, STEPS_MAX, VALUES_MAX, compile};

use Dialect::{Gemini, OpenAi, OpenAiStrict};

use crate::dialect::check;

#[test]
fn a_root_that_is_a_reference_is_opened() {
    let schema = json!({
        "$ref": "#/$defs/Node",
        "$defs": { "Node": {
            "type": "object",
            "properties": { "next": { "$ref": "#/$defs/Node" } },
        } },
    });
    check(
        &schema,
        OpenAi,
        expect![[r##"
            {
              "$defs": {
                "Node": {"properties":{"next":{"$ref":"#/$defs/Node"}},"type":"object"}
              },
              "properties": {"next":{"$ref":"#/$defs/Node"}},
              "type": "object"
            }
        "##]],
    );
    check(
        &schema,
        OpenAiStrict,
        expect![[r##"
            {
              "$defs": {
                "Node": {
                  "additionalProperties": false,
                  "properties": {"next":{"anyOf":[{"$ref":"#/$defs/Node"},{"type":"null"}]}},
                  "required": ["next"],
                  "type": "object"
                }
              },
              "additionalProperties": false,
              "properties": {"next":{"anyOf":[{"$ref":"#/$defs/Node"},{"type":"null"}]}},
              "required": ["next"],
              "type": "object"
            }
        "##]],
    );
    check(
        &schema,
        Gemini,
        expect![[r#"
            {
              "properties": {
                "next": {
                  "description": "the same shape as an object around it",
                  "type": "object"
                }
              },
              "type": "object"
            }
            `$ref` at `#/properties/next` widened
        "#]],
    );
}

#[test]
fn nothing_stands_beside_a_reference() {
    let schema = json!({
        "type": "object",
        "properties": {
            "home": { "$ref": "#/$defs/Place", "description": "Where they live." },
            "work": { "$ref": "#/$defs/Place" },
            "tree": { "$ref": "#/$defs/Tree", "description": "A tree." },
            "twig": { "allOf": [{ "$ref": "#/$defs/Tree" }] },
        },
        "required": ["home", "work", "tree", "twig"],
        "$defs": {
            "Place": { "type": "string", "description": "A place." },
            "Tree": {
                "type": "object",
                "properties": { "kids": { "type": "array", "items": { "$ref": "#/$defs/Tree" } } },
                "required": ["kids"],
            },
        },
    });
    check(
        &schema,
        OpenAiStrict,
        expect![[r##"
            {
              "$defs": {
                "Place": {"description":"A place.","type":"string"},
                "Tree": {
                  "additionalProperties": false,
                  "properties": {"kids":{"items":{"$ref":"#/$defs/Tree"},"type":"array"}},
                  "required": ["kids"],
                  "type": "object"
                }
              },
              "additionalProperties": false,
              "properties": {
                "home": {"description":"Where they live.","type":"string"},
                "tree": {"anyOf":[{"$ref":"#/$defs/Tree"}],"description":"A tree."},
                "twig": {"$ref":"#/$defs/Tree"},
                "work": {"$ref":"#/$defs/Place"}
              },
              "required": ["home","tree","twig","work"],
              "type": "object"
            }
        "##]],
    );
}

#[test]
fn references_may_name_any_place_and_need_decoding() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a/b": { "type": "string" },
            "same": { "$ref": "#/properties/a~1b" },
            "odd": { "$ref": "#/definitions/Odd%20One" },
            "self": { "$ref": "#" },
        },
        "required": ["a/b", "same", "odd", "self"],
        "definitions": { "Odd One": { "type": "boolean" } },
    });
    check(
        &schema,
        OpenAiStrict,
        expect![[r##"
            {
              "$defs": {"Odd_One":{"type":"boolean"},"a_1b":{"type":"string"}},
              "additionalProperties": false,
              "properties": {
                "a/b": {"type":"string"},
                "odd": {"$ref":"#/$defs/Odd_One"},
                "same": {"$ref":"#/$defs/a_1b"},
                "self": {"$ref":"#"}
              },
              "required": ["a/b","odd","same","self"],
              "type": "object"
            }
        "##]],
    );
}

#[test]
fn a_framed_root_that_refers_to_itself_is_shared() {
    let schema = json!({ "oneOf": [
        { "type": "string" },
        { "type": "array", "items": { "$ref": "#" } },
    ] });
    check(
        &schema,
        OpenAiStrict,
        expect![[r##"
            {
              "$defs": {
                "root": {
                  "anyOf": [
                    {"type":"string"},
                    {"items":{"$ref":"#/$defs/root"},"type":"array"}
                  ]
                }
              },
              "additionalProperties": false,
              "properties": {
                "input": {
                  "anyOf": [
                    {"type":"string"},
                    {"items":{"$ref":"#/$defs/root"},"type":"array"}
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
fn no_dialect_takes_a_reference_that_leads_nowhere() {
    let refused = |reference: &str, expected: &str| {
        let schema = json!({
            "type": "object",
            "properties": { "a": { "$ref": reference } },
            "required": ["a"],
        });
        for dialect in Dialect::ALL {
            let err = compile(&schema, dialect).expect_err(reference);
            assert_eq!(err.rule(), expected, "{reference} {dialect}: {err}");
        }
    };
    refused("https://example.com/a.json", "remote");
    refused("other.json#/a", "remote");
    refused("#/$defs/Gone", "dangling");
    refused("#anchor", "dangling");
    refused("#/%zz", "dangling");
    refused("#/required", "dangling");
}

#[test]
fn no_dialect_takes_a_reference_that_describes_nothing() {
    let cycles = [
        json!({ "$ref": "#" }),
        json!({ "$ref": "#/$defs/A", "$defs": { "A": { "$ref": "#/$defs/A" } } }),
        json!({ "allOf": [{ "$ref": "#/$defs/A" }], "$defs": { "A": { "oneOf": [
            { "type": "object" }, { "not": { "$ref": "#/$defs/A" } },
        ] } } }),
        json!({ "type": "object", "properties": { "a": { "$ref": "#/$defs/A" } }, "$defs": {
            "A": { "if": { "$ref": "#/$defs/B" } }, "B": { "anyOf": [{ "$ref": "#/$defs/A" }] },
        } }),
    ];
    for (schema, dialect) in cycles.iter().flat_map(|schema| Dialect::ALL.map(|all| (schema, all)))
    {
        let err = compile(schema, dialect).expect_err("a cycle");
        assert_eq!(err.rule(), "cyclic", "{schema} {dialect}: {err}");
    }
}

#[test]
fn a_recursive_type_inside_all_of_is_not_opened_again() {
    let schema = json!({
        "type": "object",
        "properties": { "tree": { "$ref": "#/$defs/Tree" } },
        "required": ["tree"],
        "$defs": { "Tree": {
            "type": "object",
            "properties": { "kid": { "allOf": [
                { "$ref": "#/$defs/Tree" },
                { "properties": { "name": { "type": "string" } } },
            ] } },
        } },
    });
    check(
        &schema,
        Gemini,
        expect![[r#"
            {
              "properties": {
                "tree": {
                  "properties": {
                    "kid": {
                      "description": "the same shape as an object around it",
                      "type": "object"
                    }
                  },
                  "type": "object"
                }
              },
              "required": ["tree"],
              "type": "object"
            }
            `$ref` at `#/$defs/Tree/properties/kid` widened
        "#]],
    );
    check(
        &schema,
        OpenAiStrict,
        expect![[r##"
            {
              "$defs": {
                "Tree": {
                  "additionalProperties": false,
                  "properties": {
                    "kid": {
                      "additionalProperties": false,
                      "properties": {
                        "kid": {"anyOf":[{"$ref":"#/$defs/Tree"},{"type":"null"}]},
                        "name": {"type":["string","null"]}
                      },
                      "required": ["kid","name"],
                      "type": ["object","null"]
                    }
                  },
                  "required": ["kid"],
                  "type": "object"
                }
              },
              "additionalProperties": false,
              "properties": {"tree":{"$ref":"#/$defs/Tree"}},
              "required": ["tree"],
              "type": "object"
            }
            `allOf` at `#/$defs/Tree/properties/kid/properties/kid` widened
        "##]],
    );
}

#[test]
fn a_schema_that_grows_beyond_a_limit_is_refused() {
    let too_big = |schema: &Value, dialect| {
        let err = compile(schema, dialect).expect_err("a limit");
        assert_eq!(err.rule(), "too-big", "{dialect}: {err}");
        err.to_string()
    };
    let mut nested = json!({ "type": "string" });
    for _ in 0..DEPTH_MAX {
        nested = json!({ "type": "array", "items": nested });
    }
    let many = json!({ "enum": (0..VALUES_MAX).collect::<Vec<_>>() });
    let named = (0..=REFERENCES_MAX).map(|index| (format!("a{index}"), json!({})));
    let shelf = named.collect::<Map<String, Value>>();
    let each = shelf.keys().map(|name| json!({ "$ref": format!("#/$defs/{name}") }));
    let references = json!({ "prefixItems": each.collect::<Vec<_>>(), "$defs": shelf });
    for dialect in Dialect::ALL {
        assert_eq!(too_big(&nested, dialect), "the schema has more than 128 levels");
        assert_eq!(too_big(&many, dialect), "the schema has more than 100000 values");
        let expected = "the schema has more than 500 different references";
        assert_eq!(too_big(&references, dialect), expected);
    }
    // Each definition mentions the next one twice.
    let doubled = |index: usize| {
        let next = json!({ "$ref": format!("#/$defs/a{}", index + 1) });
        (format!("a{index}"), json!({ "type": "object", "properties": { "x": next, "y": next } }))
    };
    let mut shelf = (0..30).map(doubled).collect::<Map<String, Value>>();
    shelf.insert("a30".into(), json!({ "type": "string" }));
    let schema = json!({ "$ref": "#/$defs/a0", "$defs": shelf });
    let expected = format!("the schema has more than {STEPS_MAX} values, each reference opened");
    assert_eq!(too_big(&schema, Gemini), expected);
    assert!(compile(&schema, OpenAiStrict).is_ok(), "shared subschemas are compiled once");
    // Alternatives of alternatives, which would take a walk without end to see through.
    let doubled = |index: usize| {
        let next = json!({ "$ref": format!("#/$defs/a{}", index + 1) });
        (format!("a{index}"), json!({ "anyOf": [next, { "allOf": [next] }] }))
    };
    let mut shelf = (0..40).map(doubled).collect::<Map<String, Value>>();
    shelf.insert("a40".into(), json!({ "type": "string" }));
    let properties = json!({ "x": { "$ref": "#/$defs/a0" } });
    let schema = json!({ "type": "object", "properties": properties, "$defs": shelf });
    for dialect in Dialect::ALL {
        let _ = compile(&schema, dialect);
    }
}

#[test]
fn a_schema_may_be_deep_but_not_bottomless() {
    let nested = |levels: usize| {
        let wrap = |schema, _| json!({ "type": "array", "items": schema });
        let inner = (0..levels).fold(json!({ "type": "string" }), wrap);
        json!({ "type": "object", "properties": { "a": inner } })
    };
    // A chain of references that says nothing until its end.
    let chained = |links: usize| {
        let link = |index: usize| {
            let next = json!({ "$ref": format!("#/$defs/a{}", index + 1) });
            (format!("a{index}"), json!({ "anyOf": [next, { "type": "null" }] }))
        };
        let mut shelf = (0..links).map(link).collect::<Map<String, Value>>();
        shelf.insert(format!("a{links}"), json!({ "type": "string" }));
        json!({
            "type": "object", "properties": { "a": { "$ref": "#/$defs/a0" } }, "$defs": shelf,
        })
    };
    for dialect in Dialect::ALL {
        assert!(compile(&nested(90), dialect).is_ok(), "{dialect}");
        assert!(compile(&chained(40), dialect).is_ok(), "{dialect}");
    }
    for dialect in [OpenAiStrict, Dialect::AnthropicStrict, Gemini] {
        let err = compile(&nested(100), dialect).unwrap_err();
        let expected = "the schema has more than 96 levels, each reference opened";
        assert_eq!(err.to_string(), expected, "{dialect}");
    }
    let err = compile(&chained(400), Gemini).unwrap_err();
    assert_eq!(err.rule(), "too-big");
    assert!(compile(&chained(400), OpenAiStrict).is_ok(), "shared subschemas are not nested");
}

#[test]
fn a_reference_that_may_be_null_as_openapi_says_it() {
    let schema = json!({
        "type": "object",
        "properties": { "a": { "$ref": "#/$defs/A", "nullable": true } },
        "required": ["a"],
        "$defs": { "A": { "type": "string" } },
    });
    check(
        &schema,
        OpenAiStrict,
        expect![[r##"
            {
              "$defs": {"A":{"type":"string"}},
              "additionalProperties": false,
              "properties": {"a":{"anyOf":[{"$ref":"#/$defs/A"},{"type":"null"}]}},
              "required": ["a"],
              "type": "object"
            }
        "##]],
    );
    check(
        &schema,
        Gemini,
        expect![[r#"
            {
              "properties": {"a":{"nullable":true,"type":"string"}},
              "required": ["a"],
              "type": "object"
            }
        "#]],
    );
}

//! What a model reads when its arguments do not match.

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::limits::{MISMATCH_BYTES_MAX, PROBLEMS_MAX};
use tooltape::{Checker, Doc, Limits, nearest};

/// The words for a text that a schema refuses, which must be the same with and without the walk.
fn words(schema: &Value, text: &str) -> String {
    let checker = Checker::compile(schema).expect("the schema compiles");
    let doc = Doc::read(text, &Limits::default()).expect("the text is JSON");
    let mismatch = checker.check(&doc).expect_err("the text does not match");
    if let (true, Some(mut slow)) = (checker.is_fast(), schema.as_object().cloned()) {
        slow.insert("x-unknown-to-the-walk".into(), json!(true));
        let slow = Checker::compile(&Value::Object(slow)).expect("the schema still compiles");
        assert!(!slow.is_fast());
        assert_eq!(slow.check(&doc), Err(mismatch.clone()));
    }
    assert!((1..=PROBLEMS_MAX).contains(&mismatch.problems().len()));
    let shown = mismatch.to_string();
    assert!(shown.len() <= MISMATCH_BYTES_MAX);
    shown
}

/// Shows each text with what is wrong with it.
fn check(cases: &[(&Value, &str)], expected: &Expect) {
    let mut shown = String::new();
    for (schema, text) in cases {
        shown += &format!("{text}\n");
        shown.extend(words(schema, text).lines().map(|line| format!("    {line}\n")));
    }
    expected.assert_eq(&shown);
}

/// Shows for each schema and text what is wrong.
fn check_rules(cases: &[(Value, &str)], expected: &Expect) {
    let mut shown = String::new();
    for (schema, text) in cases {
        shown += &format!("{schema}\n    {}\n", words(schema, text));
    }
    expected.assert_eq(&shown);
}

#[test]
fn missing_fields_are_named() {
    let schema = json!({
        "properties": { "path": { "type": "string" }, "to": { "required": ["x"] } },
        "required": ["path"],
    });
    check(
        &[(&schema, "{}"), (&schema, r#"{"path": "a", "to": {}}"#), (&schema, r#"{"to": {}}"#)],
        &expect![[r#"
            {}
                missing `path`
            {"path": "a", "to": {}}
                /to: missing `x`
            {"to": {}}
                missing `path`
                /to: missing `x`
        "#]],
    );
}

#[test]
fn unknown_fields_are_named_with_what_was_probably_meant() {
    let two = json!({
        "properties": { "path": {}, "max_results": {} },
        "additionalProperties": false,
    });
    let none = json!({ "properties": {}, "additionalProperties": false });
    let closed = json!({ "additionalProperties": false });
    let all = json!({ "allOf": [{ "properties": { "a": {} } }], "unevaluatedProperties": false });
    let odd = json!({ "properties": { "additionalProperties": false } });
    let item = json!({
        "$defs": { "item": { "properties": { "title": {} }, "additionalProperties": false } },
        "properties": { "item": { "$ref": "#/$defs/item" } },
    });
    check(
        &[
            (&two, r#"{"pth": 1}"#),
            (&two, r#"{"maxResults": 1}"#),
            (&two, r#"{"colour": 1}"#),
            (&two, r#"{"path": 1, "paths": 1}"#),
            (&none, r#"{"a": 1}"#),
            (&closed, r#"{"a\nb": 1}"#),
            (&all, r#"{"b": 1}"#),
            (&odd, r#"{"additionalProperties": {"a": 1}}"#),
            (&item, r#"{"item": {"titel": 1}}"#),
        ],
        &expect![[r#"
            {"pth": 1}
                unknown field `pth`: did you mean `path`?
            {"maxResults": 1}
                unknown field `maxResults`: did you mean `max_results`?
            {"colour": 1}
                unknown field `colour`, expected one of `max_results`, `path`
            {"path": 1, "paths": 1}
                unknown field `paths`, expected one of `max_results`, `path`
            {"a": 1}
                unknown field `a`, expected no fields
            {"a\nb": 1}
                unknown field `a\nb`, expected no fields
            {"b": 1}
                unknown field `b`
            {"additionalProperties": {"a": 1}}
                /additionalProperties: expected nothing, found object `{"a": 1}`
            {"item": {"titel": 1}}
                /item: unknown field `titel`: did you mean `title`?
        "#]],
    );
}

#[test]
fn a_wrong_type_is_named_with_what_was_found_and_how_to_write_it() {
    let typed = |types: Value| json!({ "properties": { "n": { "type": types } } });
    check_rules(
        &[
            (typed(json!("integer")), r#"{"n": "50"}"#),
            (typed(json!("integer")), r#"{"n": 1.5}"#),
            (typed(json!("integer")), r#"{"n": "1.5"}"#),
            (typed(json!("string")), r#"{"n": 50}"#),
            (typed(json!("string")), r#"{"n": null}"#),
            (typed(json!(["string", "null"])), r#"{"n": [1, 2]}"#),
            (typed(json!("array")), r#"{"n": "[1, 2]"}"#),
            (typed(json!("boolean")), r#"{"n": "true"}"#),
            (json!({ "type": "object" }), "[]"),
        ],
        &expect![[r#"
            {"properties":{"n":{"type":"integer"}}}
                /n: expected integer, found string `"50"`: did you mean `50`?
            {"properties":{"n":{"type":"integer"}}}
                /n: expected integer, found number `1.5`
            {"properties":{"n":{"type":"integer"}}}
                /n: expected integer, found string `"1.5"`
            {"properties":{"n":{"type":"string"}}}
                /n: expected string, found number `50`: did you mean `"50"`?
            {"properties":{"n":{"type":"string"}}}
                /n: expected string, found null
            {"properties":{"n":{"type":["string","null"]}}}
                /n: expected null or string, found array `[1, 2]`
            {"properties":{"n":{"type":"array"}}}
                /n: expected array, found string `"[1, 2]"`: did you mean `[1, 2]`?
            {"properties":{"n":{"type":"boolean"}}}
                /n: expected boolean, found string `"true"`: did you mean `true`?
            {"type":"object"}
                expected object, found array `[]`
        "#]],
    );
}

#[test]
fn a_value_that_is_not_listed_is_shown_with_the_list() {
    let mode = json!({ "properties": { "mode": { "enum": ["read", "write"] } } });
    let one = json!({ "const": "a" });
    let mixed = json!({ "enum": [1, "1", null] });
    let many: Vec<String> = (0..100).map(|index| format!("option-{index}")).collect();
    let many = json!({ "enum": many });
    check(
        &[
            (&mode, r#"{"mode": "fast"}"#),
            (&mode, r#"{"mode": "Write"}"#),
            (&mode, r#"{"mode": 7}"#),
            (&one, r#""b""#),
            (&mixed, r#""2""#),
            (&many, r#""nothing like it""#),
        ],
        &expect![[r#"
            {"mode": "fast"}
                /mode: `fast` is not allowed, expected one of `read`, `write`
            {"mode": "Write"}
                /mode: `Write` is not allowed: did you mean `write`?
            {"mode": 7}
                /mode: `7` is not allowed, expected one of `"read"`, `"write"`
            "b"
                `b` is not allowed, expected `a`
            "2"
                `"2"` is not allowed, expected one of `1`, `"1"`, `null`
            "nothing like it"
                `nothing like it` is not allowed, expected one of `option-0`, `option-1`, `option-2`, `option-3`, `option-4`, `option-5`, `option-6`, `option-7`, `option-8`, `option-9` or 90 more
        "#]],
    );
}

#[test]
fn limits_are_named_with_what_was_found() {
    check_rules(
        &[
            (json!({ "minimum": 1 }), "0"),
            (json!({ "maximum": 1.5 }), "2"),
            (json!({ "exclusiveMinimum": 1 }), "1"),
            (json!({ "exclusiveMaximum": 1 }), "1e3"),
            (json!({ "multipleOf": 5 }), "7"),
            (json!({ "multipleOf": 0.01 }), "0.0075"),
            (json!({ "minLength": 3 }), r#""é""#),
            (json!({ "maxLength": 1 }), r#""éé""#),
            (json!({ "minItems": 1 }), "[]"),
            (json!({ "maxItems": 1 }), "[1, 2]"),
            (json!({ "minProperties": 1 }), "{}"),
            (json!({ "maxProperties": 0 }), r#"{"a": 1}"#),
        ],
        &expect![[r#"
            {"minimum":1}
                expected at least 1, found 0
            {"maximum":1.5}
                expected at most 1.5, found 2
            {"exclusiveMinimum":1}
                expected more than 1, found 1
            {"exclusiveMaximum":1}
                expected less than 1, found 1e3
            {"multipleOf":5}
                expected a multiple of 5, found 7
            {"multipleOf":0.01}
                expected a multiple of 0.01, found 0.0075
            {"minLength":3}
                expected at least 3 characters, found 1
            {"maxLength":1}
                expected at most 1 character, found 2
            {"minItems":1}
                expected at least 1 item, found 0
            {"maxItems":1}
                expected at most 1 item, found 2
            {"minProperties":1}
                expected at least 1 field, found 0
            {"maxProperties":0}
                expected at most 0 fields, found 1
        "#]],
    );
}

#[test]
fn other_rules_are_named() {
    let base64 = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "contentEncoding": "base64",
    });
    check_rules(
        &[
            (json!({ "pattern": "^[a-z]+$" }), r#""A1""#),
            (json!({ "uniqueItems": true }), "[1, 1.0]"),
            (json!({ "not": { "type": "string" } }), r#""a""#),
            (json!({ "properties": { "a": false } }), r#"{"a": 1}"#),
            (json!({ "contains": { "type": "string" } }), "[1]"),
            (json!({ "contains": {}, "minContains": 2 }), "[1]"),
            (json!({ "propertyNames": { "maxLength": 3 } }), r#"{"long_name": 1}"#),
            (json!({ "propertyNames": { "enum": ["a", "b"] } }), r#"{"c": 1}"#),
            (json!({ "prefixItems": [{}], "items": false }), "[1, 2]"),
            (json!({ "prefixItems": [{}], "unevaluatedItems": false }), "[1, 2]"),
            (json!({ "dependentRequired": { "a": ["b"] } }), r#"{"a": 1}"#),
            (json!({ "oneOf": [{}, { "type": "integer" }] }), "1"),
            (json!({ "if": {}, "then": { "minimum": 5 } }), "1"),
            (base64, r#""~""#),
        ],
        &expect![[r#"
            {"pattern":"^[a-z]+$"}
                expected text that matches `^[a-z]+$`, found string `"A1"`
            {"uniqueItems":true}
                expected items that all differ, found array `[1, 1.0]`
            {"not":{"type":"string"}}
                expected anything that does not match `{"type":"string"}`, found string `"a"`
            {"properties":{"a":false}}
                /a: expected nothing, found number `1`
            {"contains":{"type":"string"}}
                expected an item that matches `{"type":"string"}`, found array `[1]`
            {"contains":{},"minContains":2}
                expected 2 items as `contains` describes them, found array `[1]`
            {"propertyNames":{"maxLength":3}}
                expected each field name to be at most 3 characters, found `long_name`
            {"propertyNames":{"enum":["a","b"]}}
                expected each field name to be one of `a`, `b`, found `c`
            {"items":false,"prefixItems":[{}]}
                /1: expected nothing, found number `2`
            {"prefixItems":[{}],"unevaluatedItems":false}
                expected no further items, found array `[1, 2]`
            {"dependentRequired":{"a":["b"]}}
                missing `b`
            {"oneOf":[{},{"type":"integer"}]}
                expected a value of one form, not of several, found number `1`
            {"if":{},"then":{"minimum":5}}
                expected at least 5, found 1
            {"$schema":"http://json-schema.org/draft-07/schema#","contentEncoding":"base64"}
                expected text in the encoding `base64`, found string `"~"`
        "#]],
    );
}

#[test]
fn of_several_forms_the_nearest_is_told() {
    let optional = json!({ "anyOf": [{ "type": "integer" }, { "type": "null" }] });
    let by_tag = json!({ "oneOf": [
        { "properties": { "op": { "const": "move" }, "to": { "type": "string" } },
          "required": ["op", "to"] },
        { "properties": { "op": { "const": "wait" }, "seconds": { "minimum": 1 } },
          "required": ["op", "seconds"] },
    ]});
    let documented = json!({ "oneOf": [{ "const": "fast" }, { "const": "slow" }] });
    let nested = json!({ "anyOf": [{ "type": "string" }, { "anyOf": [
        { "type": "array", "items": { "type": "integer" } }, { "type": "null" },
    ]}]});
    check(
        &[
            (&optional, r#""7""#),
            (&by_tag, r#"{"op": "wait", "seconds": 0}"#),
            (&by_tag, r#"{"op": "wiat"}"#),
            (&by_tag, r#"{"op": "move"}"#),
            (&by_tag, "{}"),
            (&documented, r#""fats""#),
            (&nested, r#"[1, "2"]"#),
            (&nested, "true"),
        ],
        &expect![[r#"
            "7"
                expected integer or null, found string `"7"`: did you mean `7`?
            {"op": "wait", "seconds": 0}
                /seconds: expected at least 1, found 0
            {"op": "wiat"}
                /op: `wiat` is not allowed: did you mean `wait`?
            {"op": "move"}
                missing `to`
            {}
                missing `op`
                missing `to`
            "fats"
                `fats` is not allowed: did you mean `fast`?
            [1, "2"]
                /1: expected integer, found string `"2"`: did you mean `2`?
            true
                expected array or null or string, found boolean `true`: did you mean `"true"`?
        "#]],
    );
}

#[test]
fn places_are_json_pointers_in_order_and_the_rest_is_counted() {
    let deep = json!({ "additionalProperties": { "items": { "additionalProperties": {
        "type": "integer",
    }}}});
    let items = json!({ "items": { "type": "integer" } });
    let mixed = json!({
        "properties": { "b": { "type": "string" }, "a": { "items": { "type": "string" } } },
        "required": ["c", "d"],
        "additionalProperties": false,
    });
    check(
        &[
            (&deep, r#"{"a/b": [{}, {"m~n": "x", "": "y"}]}"#),
            (&items, r#"[0, "1", 2, 3, 4, 5, 6, 7, 8, 9, "10"]"#),
            (&mixed, r#"{"b": 1, "e": 2, "a": [1, "x", 3, 4]}"#),
        ],
        &expect![[r#"
            {"a/b": [{}, {"m~n": "x", "": "y"}]}
                /a~1b/1/: expected integer, found string `"y"`
                /a~1b/1/m~0n: expected integer, found string `"x"`
            [0, "1", 2, 3, 4, 5, 6, 7, 8, 9, "10"]
                /1: expected integer, found string `"1"`: did you mean `1`?
                /10: expected integer, found string `"10"`: did you mean `10`?
            {"b": 1, "e": 2, "a": [1, "x", 3, 4]}
                missing `c`
                missing `d`
                unknown field `e`, expected one of `a`, `b`
                /a/0: expected string, found number `1`: did you mean `"1"`?
                /a/2: expected string, found number `3`: did you mean `"3"`?
                and 2 more problems
        "#]],
    );
}

#[test]
fn long_texts_are_cut_between_characters() {
    let name = "字".repeat(101);
    let named = json!({ "properties": { &name: { "type": "string" } }, "required": [&name] });
    let integer = json!({ "type": "integer" });
    check(
        &[
            (&integer, &format!(r#""{}""#, "é".repeat(55))),
            (&json!({ "enum": ["b"] }), &format!(r#""a{}""#, "🦀".repeat(30))),
            (&named, "{}"),
            (&named, &json!({ &name: 1 }).to_string()),
            (&integer, "\"a\\u0000b\\u202ec\""),
        ],
        &expect![[r#"
            "ééééééééééééééééééééééééééééééééééééééééééééééééééééééé"
                expected integer, found string `"ééééééééééééééééééééééééééééééééééééééééééééééééé…`
            "a🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀"
                `a🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀🦀…` is not allowed, expected `b`
            {}
                missing `字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字…`
            {"字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字":1}
                /字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字字…: expected string, found number `1`: did you mean `"1"`?
            "a\u0000b\u202ec"
                expected integer, found string `"a\u0000b\u202ec"`
        "#]],
    );
}

#[test]
fn the_whole_text_is_bounded() {
    let fields = |first: &str| -> Value {
        let name = |index| format!("{first}-{index}-{}", "x".repeat(500));
        (0..100).map(|index| (name(index), json!({}))).collect()
    };
    let text = fields("unknown").to_string();
    let mut schema = json!({ "additionalProperties": false });
    assert_eq!(words(&schema, &text).lines().last(), Some("and 95 more problems"));
    schema["properties"] = fields("known");
    assert!(words(&schema, &text).len() <= MISMATCH_BYTES_MAX);

    let items = format!("[{}0]", "1,".repeat(100_000));
    let shown = words(&json!({ "items": { "type": "string" }, "type": "array" }), &items);
    assert!(shown.starts_with("/0: expected string, found number `1`"));
    assert_eq!(shown.lines().last(), Some("and more problems"));
}

#[test]
fn the_nearest_word_is_near() {
    fn near(word: &str) -> Option<&str> {
        nearest(word, ["path", "max_results", "recursive", "id"])
    }
    assert_eq!(near("pahT"), Some("path"));
    assert_eq!(near("max-result"), Some("max_results"));
    assert_eq!(near("results"), Some("max_results"));
    assert_eq!(near("recusrive"), Some("recursive"));
    assert_eq!(near("di"), Some("id"));
    assert_eq!(near("x"), None);
    assert_eq!(near("parent"), None);
    assert_eq!(near(""), None);
    assert_eq!(near("__"), None);
    assert_eq!(near(&"path".repeat(20)), None);
    assert_eq!(nearest("ab", ["cd", "abc", "abd"]), Some("abc"));
    assert_eq!(nearest("straße", ["strasse", "strabe"]), Some("strabe"));
}

//! What a model wrote for a compiled schema, brought back to arguments for the original.

use std::borrow::Cow;

use serde_json::{Value, json};
use tooltape::dialect::Dialect::{self, AnthropicStrict, Gemini, OpenAi, OpenAiStrict};
use tooltape::dialect::compile;

/// Restores what was written; both sides are text, since spelling matters.
fn check(schema: &Value, dialect: Dialect, written: &str, expected: &str) {
    let compiled = compile(schema, dialect).expect("the schema has a form");
    assert_eq!(compiled.restore(written), expected, "{dialect}");
}

fn untouched(schema: &Value, dialect: Dialect, written: &str) {
    let compiled = compile(schema, dialect).expect("the schema has a form");
    let restored = compiled.restore(written);
    assert!(matches!(restored, Cow::Borrowed(text) if text == written), "{dialect}: {restored}");
}

fn person() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string" },
            "age": { "type": "number" },
            "note": { "type": ["string", "null"] },
            "home": { "type": "object", "properties": { "city": { "type": "string" } } },
            "kids": { "type": "array", "items": { "$ref": "#" } },
        },
        "required": ["name"],
    })
}

#[test]
fn null_of_an_optional_property_means_absent_at_any_depth() {
    check(
        &person(),
        OpenAiStrict,
        r#"{"name":"a","age":null,"home":{"city":null},"kids":[{"name":"b","kids":null}]}"#,
        r#"{"name":"a","home":{},"kids":[{"name":"b"}]}"#,
    );
}

#[test]
fn null_that_the_original_allows_stays() {
    untouched(&person(), OpenAiStrict, r#"{"name":"a","note":null}"#);
    // It is required, so the null is for the tool's own checks to refuse.
    untouched(&person(), OpenAiStrict, r#"{"name":null}"#);
}

#[test]
fn what_stays_keeps_its_spelling_and_its_order() {
    check(
        &person(),
        OpenAiStrict,
        "{ \"note\" : \"\\u0041\\/\", \"age\": 1.50e+2,\n \"other\": [ 1 , 2.0 ], \"home\": null,\
         \"name\": 12345678901234567890123 }",
        "{\"note\":\"\\u0041\\/\",\"age\":1.50e+2,\"other\":[ 1 , 2.0 ],\
         \"name\":12345678901234567890123}",
    );
}

#[test]
fn text_that_needs_no_change_is_returned_byte_for_byte() {
    for text in ["{ \"name\" : \"a\" }", " {} ", "[1,\t2]", "null", "\"text\"", "-0.0"] {
        untouched(&person(), OpenAiStrict, text);
    }
    let plain = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    for dialect in [OpenAi, Dialect::Anthropic, AnthropicStrict, Gemini, Dialect::Plain] {
        assert!(!compile(&plain, dialect).unwrap().reshapes());
        untouched(&plain, dialect, r#"{"a":null}"#);
    }
}

#[test]
fn text_that_is_not_json_is_never_repaired() {
    for text in ["", "{", r#"{"age":null"#, r#"{"age":null,}"#, r#"{"age":null} x"#, "{'age':null}"]
    {
        untouched(&person(), OpenAiStrict, text);
    }
}

#[test]
fn a_repeated_key_is_left_for_others_to_refuse() {
    untouched(&person(), OpenAiStrict, r#"{"age":null,"age":1}"#);
    untouched(&person(), OpenAiStrict, r#"{"age":null,"\u0061ge":1}"#);
    untouched(&person(), OpenAiStrict, r#"{"age":null,"home":{"city":null,"city":"x"}}"#);
    // Where nothing would change, nothing is looked at.
    check(
        &person(),
        OpenAiStrict,
        r#"{"age":null,"note":{"a":1,"a":2}}"#,
        r#"{"note":{"a":1,"a":2}}"#,
    );
}

#[test]
fn text_that_is_nested_too_deep_is_untouched() {
    let deep =
        |depth: usize| format!("{}{}", r#"{"age":null,"kids":["#.repeat(depth), "]}".repeat(depth));
    untouched(&person(), OpenAiStrict, &deep(10_000));
    let compiled = compile(&person(), OpenAiStrict).unwrap();
    assert_eq!(compiled.restore(&deep(20)), deep(20).replace(r#""age":null,"#, ""));
}

#[test]
fn a_framed_root_is_taken_out_of_its_frame() {
    let schema = json!({ "oneOf": [
        { "type": "object", "properties": { "kind": { "const": "a" } }, "required": ["kind"] },
        { "type": "object", "properties": { "kind": { "const": "b" }, "input": true } },
    ] });
    // `input` is taken, so the frame has another name.
    check(&schema, OpenAi, r#"{"input_2": {"kind": "a"} }"#, r#"{"kind": "a"}"#);
    untouched(&schema, OpenAi, r#"{"input":{"kind":"a"}}"#);
    untouched(&schema, OpenAi, r#"{"input_2":{"kind":"a"},"more":1}"#);
    // A model that forgets the frame is understood.
    untouched(&schema, OpenAi, r#"{"kind":"b","input":1}"#);
}

#[test]
fn alternatives_are_told_apart_by_their_shape() {
    let schema = json!({
        "type": "object",
        "properties": { "it": { "anyOf": [
            { "type": "string" },
            {
                "type": "object",
                "properties": { "kind": { "const": "a" }, "x": { "type": "integer" } },
                "required": ["kind"],
            },
            {
                "type": "object",
                "properties": { "kind": { "const": "b" }, "x": { "type": ["integer", "null"] } },
                "required": ["kind"],
            },
            { "type": "array", "items": { "type": "object", "properties": {
                "y": { "type": "string" },
            } } },
        ] } },
        "required": ["it"],
    });
    let check = |written, expected| check(&schema, OpenAiStrict, written, expected);
    check(r#"{"it":{"kind":"a","x":null}}"#, r#"{"it":{"kind":"a"}}"#);
    check(r#"{"it":{"kind":"b","x":null}}"#, r#"{"it":{"kind":"b","x":null}}"#);
    check(r#"{"it":[{"y":null},{"y":"z"}]}"#, r#"{"it":[{},{"y":"z"}]}"#);
    untouched(&schema, OpenAiStrict, r#"{"it":"x"}"#);
    untouched(&schema, OpenAiStrict, r#"{"it":{"kind":"c","x":null}}"#);
}

#[test]
fn a_list_of_entries_becomes_a_map_again() {
    let schema = json!({
        "type": "object",
        "properties": { "map": {
            "type": "object",
            "additionalProperties": {
                "type": "object", "properties": { "a": { "type": "integer" } },
            },
        } },
        "required": ["map"],
    });
    let written = r#"{"map":[{"key":"x","value":{"a":1.0}},{"value":{"a":null},"key":"\u0079"}]}"#;
    check(&schema, OpenAiStrict, written, r#"{"map":{"x":{"a":1.0},"\u0079":{}}}"#);
    check(&schema, Gemini, r#"{"map":[]}"#, r#"{"map":{}}"#);
    // Two entries with one key become a repeated key, which is refused later.
    let twice = r#"{"map":[{"key":"x","value":{}},{"key":"x","value":{}}]}"#;
    check(&schema, AnthropicStrict, twice, r#"{"map":{"x":{},"x":{}}}"#);
    for odd in [
        r#"{"map":{"x":{"a":1}}}"#,
        r#"{"map":[{"key":1,"value":{}}]}"#,
        r#"{"map":[{"key":"x"}]}"#,
        r#"{"map":[{"key":"x","value":{},"more":1}]}"#,
        r#"{"map":[1]}"#,
    ] {
        untouched(&schema, AnthropicStrict, odd);
    }
}

#[test]
fn a_renamed_property_gets_its_name_back() {
    let schema = json!({
        "type": "object",
        "properties": { "filter[id]": { "type": "string" }, "a\"b": { "type": "object",
            "properties": { "c d": { "type": "string" } } } },
    });
    let written = r#"{"filter_id_":"x","a_b":{"c_d":"y"}}"#;
    check(&schema, Gemini, written, r#"{"filter[id]":"x","a\"b":{"c d":"y"}}"#);
    // Anthropic looks at the names of the root only.
    let written = r#"{"filter_id_":"x","a_b":{"c d":"y"}}"#;
    let expected = r#"{"filter[id]":"x","a\"b":{"c d":"y"}}"#;
    check(&schema, Dialect::Anthropic, written, expected);
}

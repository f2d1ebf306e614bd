//! What a compiled schema promises beside its words.

use std::fs;

use expect_test::expect;
use serde_json::{Value, json};
use tooltape::{Checker, Doc, Limits};

use crate::data;
use crate::schema_suite::{DRAFT_7, groups};

fn is_valid(schema: &Value, text: &str) -> bool {
    let checker = Checker::compile(schema).unwrap();
    checker.check(&Doc::read(text, &Limits::default()).unwrap()).is_ok()
}

#[test]
fn an_input_schema_describes_an_object() {
    let object = json!({ "type": "object" });
    for schema in [
        object.clone(),
        json!({ "type": ["object"] }),
        json!({ "enum": [{}, { "a": 1 }] }),
        json!({ "const": {} }),
        json!({ "$ref": "#/$defs/o", "$defs": { "o": object } }),
        json!({ "anyOf": [object, { "$ref": "#/$defs/o" }], "$defs": { "o": object } }),
        json!({ "oneOf": [object, { "allOf": [{}, object] }] }),
        json!({ "$schema": DRAFT_7, "$ref": "#/definitions/o", "definitions": { "o": object } }),
    ] {
        assert!(Checker::compile_input(&schema).is_ok(), "{schema}");
    }
    let mut shown = String::new();
    for schema in [
        json!(true),
        json!({}),
        json!({ "type": ["object", "null"] }),
        json!({ "properties": { "a": {} } }),
        json!({ "enum": [{}, 1] }),
        json!({ "anyOf": [object, { "type": "string" }] }),
        json!({ "oneOf": [object, { "$ref": "#/$defs/s" }], "$defs": { "s": {} } }),
        json!({ "$ref": "#/$defs/s", "$defs": { "s": { "type": "string" } } }),
        json!({ "$schema": DRAFT_7, "type": "object", "$ref": "#/definitions/s",
                "definitions": { "s": {} } }),
    ] {
        assert!(Checker::compile(&schema).is_ok());
        let err = Checker::compile_input(&schema).err().unwrap();
        assert_eq!(err.code(), "schema.not_an_object");
        shown += &format!("{schema}\n    {err}\n");
    }
    expect![[r##"
        true
            an input schema must describe an object, but `#` does not say `type: object`
        {}
            an input schema must describe an object, but `#` does not say `type: object`
        {"type":["object","null"]}
            an input schema must describe an object, but `#` does not say `type: object`
        {"properties":{"a":{}}}
            an input schema must describe an object, but `#` does not say `type: object`
        {"enum":[{},1]}
            an input schema must describe an object, but `#` does not say `type: object`
        {"anyOf":[{"type":"object"},{"type":"string"}]}
            an input schema must describe an object, but `#/anyOf/1` does not say `type: object`
        {"$defs":{"s":{}},"oneOf":[{"type":"object"},{"$ref":"#/$defs/s"}]}
            an input schema must describe an object, but `#/$defs/s` does not say `type: object`
        {"$defs":{"s":{"type":"string"}},"$ref":"#/$defs/s"}
            an input schema must describe an object, but `#/$defs/s` does not say `type: object`
        {"$ref":"#/definitions/s","$schema":"http://json-schema.org/draft-07/schema#","definitions":{"s":{}},"type":"object"}
            an input schema must describe an object, but `#/definitions/s` does not say `type: object`
    "##]].assert_eq(&shown);
}

#[test]
fn whether_nothing_is_enough_is_known() {
    let accepts = |schema| Checker::compile(&schema).unwrap().accepts_empty_object();
    assert!(accepts(json!({ "type": "object", "properties": { "a": { "type": "string" } } })));
    assert!(!accepts(json!({ "type": "object", "required": ["a"] })));
    assert!(!accepts(json!({ "minProperties": 1 })));
    assert!(!accepts(json!({ "type": "array" })));
}

#[test]
fn arrays_that_are_sets_are_known() {
    let canonical = |schema: Value, text: &str| {
        let checker = Checker::compile(&schema).unwrap();
        let doc = Doc::read(text, &Limits::default()).unwrap();
        match checker.sets() {
            Some(sets) => doc.canonical_with(sets).as_str().to_owned(),
            None => format!("no sets: {}", doc.canonical()),
        }
    };
    let set = json!({ "uniqueItems": true });
    let text = r#"{"a":[3,1,2],"b":[3,1,2],"c":[{"a":[2,1]}]}"#;
    let mut shown = String::new();
    for schema in [
        json!({ "properties": { "a": set } }),
        json!({ "additionalProperties": set, "properties": { "b": {} } }),
        json!({ "additionalProperties": set, "patternProperties": { "b": {} } }),
        json!({ "properties": { "a": { "$ref": "#/$defs/s" } }, "$defs": { "s": set } }),
        json!({ "allOf": [{ "properties": { "a": set } }, { "properties": { "b": set } }] }),
        json!({ "properties": { "c": { "items": { "properties": { "a": set } } } } }),
        json!({ "properties": { "a": set, "c": { "items": { "$ref": "#" } } } }),
        json!({ "anyOf": [{ "properties": { "a": set } }, {}] }),
        json!({ "properties": { "a": { "uniqueItems": false } } }),
        json!({ "$schema": DRAFT_7, "properties": { "a": {
            "$ref": "#/definitions/any", "uniqueItems": true,
        }}, "definitions": { "any": {} } }),
    ] {
        shown += &format!("{schema}\n    {}\n", canonical(schema.clone(), text));
    }
    expect![[r##"
        {"properties":{"a":{"uniqueItems":true}}}
            {"a":[1,2,3],"b":[3,1,2],"c":[{"a":[2,1]}]}
        {"additionalProperties":{"uniqueItems":true},"properties":{"b":{}}}
            {"a":[1,2,3],"b":[3,1,2],"c":[{"a":[2,1]}]}
        {"additionalProperties":{"uniqueItems":true},"patternProperties":{"b":{}}}
            no sets: {"a":[3,1,2],"b":[3,1,2],"c":[{"a":[2,1]}]}
        {"$defs":{"s":{"uniqueItems":true}},"properties":{"a":{"$ref":"#/$defs/s"}}}
            {"a":[1,2,3],"b":[3,1,2],"c":[{"a":[2,1]}]}
        {"allOf":[{"properties":{"a":{"uniqueItems":true}}},{"properties":{"b":{"uniqueItems":true}}}]}
            {"a":[1,2,3],"b":[1,2,3],"c":[{"a":[2,1]}]}
        {"properties":{"c":{"items":{"properties":{"a":{"uniqueItems":true}}}}}}
            {"a":[3,1,2],"b":[3,1,2],"c":[{"a":[1,2]}]}
        {"properties":{"a":{"uniqueItems":true},"c":{"items":{"$ref":"#"}}}}
            {"a":[1,2,3],"b":[3,1,2],"c":[{"a":[2,1]}]}
        {"anyOf":[{"properties":{"a":{"uniqueItems":true}}},{}]}
            no sets: {"a":[3,1,2],"b":[3,1,2],"c":[{"a":[2,1]}]}
        {"properties":{"a":{"uniqueItems":false}}}
            no sets: {"a":[3,1,2],"b":[3,1,2],"c":[{"a":[2,1]}]}
        {"$schema":"http://json-schema.org/draft-07/schema#","definitions":{"any":{}},"properties":{"a":{"$ref":"#/definitions/any","uniqueItems":true}}}
            no sets: {"a":[3,1,2],"b":[3,1,2],"c":[{"a":[2,1]}]}
    "##]].assert_eq(&shown);
}

#[test]
fn numbers_are_compared_exactly() {
    let whole = json!({ "type": "integer" });
    for (text, is_integer) in [
        ("1", true),
        ("1.0", true),
        ("1e3", true),
        ("10e-1", true),
        ("1.5", false),
        ("1e-1", false),
    ] {
        assert_eq!(is_valid(&whole, text), is_integer, "{text}");
    }
    let edge = json!({ "maximum": 9_007_199_254_740_992_u64 });
    assert!(is_valid(&edge, "9007199254740992") && !is_valid(&edge, "9007199254740993"));
    let edge = json!({ "maximum": u64::MAX });
    assert!(is_valid(&edge, "18446744073709551615") && !is_valid(&edge, "18446744073709551616"));
    let edge = json!({ "exclusiveMinimum": i64::MIN });
    assert!(!is_valid(&edge, "-9223372036854775808") && is_valid(&edge, "-9223372036854775807"));
    let edge = json!({ "minimum": 0.5 });
    assert!(is_valid(&edge, "1") && is_valid(&edge, "0.5") && !is_valid(&edge, "0"));
    let edge = json!({ "maximum": 1e19 });
    assert!(is_valid(&edge, "9999999999999999999") && !is_valid(&edge, "10000000000000000001"));
    let one = json!({ "enum": [1, 9_007_199_254_740_993_i64] });
    assert!(is_valid(&one, "1.0") && is_valid(&one, "9007199254740993"));
    assert!(!is_valid(&one, "9007199254740992"));
    let even = json!({ "multipleOf": 2 });
    assert!(is_valid(&even, "18446744073709551614") && !is_valid(&even, "18446744073709551615"));
    assert!(is_valid(&even, "1e2") && !is_valid(&even, "1.5"));
    assert!(is_valid(&even, "36893488147419103232") && !is_valid(&even, "36893488147419103233"));
    let set = json!({ "uniqueItems": true });
    assert!(is_valid(&set, "[9007199254740992, 9007199254740993]"));
    assert!(!is_valid(&set, "[1, 1.0]") && !is_valid(&set, r#"["a", "\u0061"]"#));
    assert!(!is_valid(
        &set,
        r#"[0, 1, 2, 3, 4, 5, 6, 7, 8, {"a": 1, "b": 2}, {"b": 2, "a": 1.0}]"#
    ));
}

#[test]
fn format_asks_nothing() {
    let Some(folder) = data::folder(1) else { return };
    for (draft, dialect) in [("draft2020-12", None), ("draft7", Some(DRAFT_7))] {
        for group in groups(&folder, &format!("{draft}/optional/format"), dialect) {
            for test in &group.tests {
                assert!(is_valid(&group.schema, &test["data"].to_string()), "{test}");
            }
        }
    }
}

#[test]
fn the_tools_of_real_servers_compile_and_most_are_fast() {
    let Some(folder) = data::folder(1) else { return };
    let (mut count, mut fast) = (0, 0);
    for entry in fs::read_dir(folder.join("mcp-tools")).unwrap() {
        let path = entry.unwrap().path();
        let read: Value = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let tools = read.as_array().unwrap().iter();
        for tool in tools.filter(|tool| tool.get("inputSchema").is_some()) {
            let input = Checker::compile_input(&tool["inputSchema"]);
            let input = input.unwrap_or_else(|err| panic!("{}: {err}", tool["name"]));
            let output = tool.get("outputSchema").map(|schema| Checker::compile(schema).unwrap());
            for checker in [Some(input), output].into_iter().flatten() {
                count += 1;
                fast += usize::from(checker.is_fast());
            }
        }
    }
    expect!["288 of 290 are fast"].assert_eq(&format!("{fast} of {count} are fast"));
}

#[test]
fn the_examples_of_the_protocol_match_its_schema() {
    let Some(folder) = data::folder(1) else { return };
    let folder = folder.join("mcp-schema/2026-07-28");
    let mut schema: Value =
        serde_json::from_str(&fs::read_to_string(folder.join("schema.json")).unwrap()).unwrap();
    let mut count = 0;
    for entry in fs::read_dir(folder.join("examples")).unwrap() {
        let entry = entry.unwrap();
        schema["$ref"] = json!(format!("#/$defs/{}", entry.file_name().to_str().unwrap()));
        let checker = Checker::compile(&schema).unwrap();
        for example in fs::read_dir(entry.path()).unwrap() {
            let text = fs::read_to_string(example.unwrap().path()).unwrap();
            let doc = Doc::read(&text, &Limits::default()).unwrap();
            assert_eq!(checker.check(&doc), Ok(()), "{}", schema["$ref"]);
            count += 1;
        }
    }
    assert_eq!(count, 129);
}

//! Verdicts are those of the `jsonschema` crate over a tree, whichever way a document is checked.

use jsonschema::{PatternOptions, Validator};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use tooltape::{Checker, Doc, Limits};

use crate::data;
use crate::schema_suite::{DRAFT_7, groups};

fn reference(schema: &Value) -> Validator {
    jsonschema::options()
        .offline()
        .should_validate_formats(false)
        .with_pattern_options(PatternOptions::regex())
        .build(schema)
        .unwrap()
}

#[test]
fn every_schema_of_the_suite_agrees_on_every_document_of_its_file() {
    let Some(folder) = data::folder(1) else { return };
    let mut compared = 0;
    for (draft, dialect) in [("draft2020-12", None), ("draft7", Some(DRAFT_7))] {
        let groups = groups(&folder, draft, dialect);
        for group in &groups {
            let Ok(checker) = Checker::compile(&group.schema) else { continue };
            let reference = reference(&group.schema);
            let of_its_file = groups.iter().filter(|other| other.file == group.file);
            for document in of_its_file.flat_map(|other| &other.tests).map(|test| &test["data"]) {
                let text = document.to_string();
                let doc = Doc::read(&text, &Limits::default()).unwrap();
                let valid = reference.is_valid(document);
                assert_eq!(checker.check(&doc).is_ok(), valid, "{}\n{text}", group.schema);
                compared += 1;
            }
        }
    }
    assert!(compared > 10_000, "only {compared} compared");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_walk_agrees_on_any_schema_it_takes(
        schema in root_schemas(),
        documents in vec((values(), vec(any::<u8>(), 16)), 8),
    ) {
        let checker = Checker::compile(&schema);
        prop_assume!(checker.is_ok());
        let checker = checker.unwrap();
        prop_assert!(checker.is_fast() || schema.is_boolean(), "{schema}");
        let mut slow = schema.clone();
        slow["x-unknown-to-the-walk"] = json!(true);
        let slow = Checker::compile(&slow).unwrap();
        prop_assert!(!slow.is_fast());
        let reference = reference(&schema);
        for (document, styles) in documents {
            let mut text = String::new();
            write(&document, &mut styles.iter().cycle().copied(), &mut text);
            let document: Value = serde_json::from_str(&text).unwrap();
            let doc = Doc::read(&text, &Limits::default()).unwrap();
            let verdict = checker.check(&doc);
            prop_assert_eq!(verdict.is_ok(), reference.is_valid(&document), "{}\n{}", schema, text);
            prop_assert_eq!(slow.check(&doc), verdict, "{}\n{}", schema, text);
        }
    }

    #[test]
    fn anything_is_a_schema_or_refused(anything in anythings(), document in values()) {
        if let Ok(checker) = Checker::compile(&anything) {
            let reference = reference(&anything);
            let text = document.to_string();
            let verdict = checker.check(&Doc::read(&text, &Limits::default()).unwrap());
            prop_assert_eq!(verdict.is_ok(), reference.is_valid(&document));
            if let Err(mismatch) = verdict {
                prop_assert!(!mismatch.to_string().is_empty());
            }
        }
    }
}

/// Trees of keywords and what may or may not stand in them.
fn anythings() -> impl Strategy<Value = Value> {
    let keywords = "$anchor $defs $dynamicAnchor $dynamicRef $id $ref $schema $vocabulary \
        additionalItems additionalProperties allOf anyOf const contains definitions dependencies \
        dependentRequired dependentSchemas else enum if items maxContains maximum minContains \
        multipleOf not oneOf pattern patternProperties prefixItems properties propertyNames \
        required then type unevaluatedItems unevaluatedProperties uniqueItems a";
    let keywords: Vec<&str> = keywords.split_whitespace().collect();
    let texts = "# #/ #/$defs/a #/a #a a a# a#a /a .. :: % #%41 urn:a http://a http://a/b# \
        https://json-schema.org/draft/2020-12/schema# http://json-schema.org/draft-07/schema# \
        integer object ^( ^a [";
    let texts: Vec<&str> = texts.split_whitespace().chain([""]).collect();
    let leaf = prop_oneof![
        select(texts).prop_map(|text| json!(text)),
        select(vec![json!(null), json!(true), json!(false), json!(-1), json!(1), json!(0.5)]),
    ];
    leaf.prop_recursive(5, 32, 4, move |inner| {
        prop_oneof![
            1 => vec(inner.clone(), 0..3).prop_map(Value::Array),
            4 => btree_map(select(keywords.clone()), inner, 0..4).prop_map(|map| json!(map)),
        ]
    })
}

/// Schemas with a definition that may refer to itself from the inside of a value.
fn root_schemas() -> impl Strategy<Value = Value> {
    (schemas(), schemas()).prop_map(|(root, definition)| {
        let mut root = match root {
            Value::Object(root) => root,
            other => Map::from_iter([("allOf".to_owned(), json!([other]))]),
        };
        root.insert("$defs".into(), json!({ "d": definition }));
        Value::Object(root)
    })
}

fn schemas() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => keywords().prop_map(Value::Object),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(json!({ "$ref": "#/$defs/d" })),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let named = btree_map(names(), inner.clone(), 0..4).prop_map(|named| json!(named));
        let list = vec(inner.clone(), 1..4).prop_map(Value::Array);
        let part = prop_oneof![
            named.prop_map(|value| ("properties", value)),
            inner.clone().prop_map(|value| ("additionalProperties", value)),
            inner.clone().prop_map(|value| ("items", value)),
            inner.prop_map(|value| ("not", value)),
            (select(vec!["allOf", "anyOf", "oneOf"]), list),
        ];
        (keywords(), vec(part, 1..3)).prop_map(|(mut schema, parts)| {
            schema.extend(parts.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)));
            Value::Object(schema)
        })
    })
}

/// A few keywords without schemas in them.
fn keywords() -> impl Strategy<Value = Map<String, Value>> {
    let kind = select(vec!["null", "boolean", "integer", "number", "string", "array", "object"]);
    let number = select(vec![json!(-1), json!(0), json!(2), json!(1.5), json!(1e2), json!(2.0)]);
    let limits = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
    let size = select(vec![json!(0), json!(1), json!(2), json!(2.0)]);
    let sizes =
        ["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties"];
    let keyword = prop_oneof![
        kind.clone().prop_map(|kind| ("type", json!(kind))),
        vec(kind, 1..3).prop_map(|mut kinds| {
            kinds.sort_unstable();
            kinds.dedup();
            ("type", json!(kinds))
        }),
        (select(limits.to_vec()), number),
        (select(sizes.to_vec()), size),
        select(vec![1, 2, 3]).prop_map(|of| ("multipleOf", json!(of))),
        any::<bool>().prop_map(|differ| ("uniqueItems", json!(differ))),
        vec(values(), 1..4).prop_map(|values| ("enum", Value::Array(values))),
        values().prop_map(|value| ("const", value)),
        vec(names(), 0..3).prop_map(|mut names| {
            names.sort_unstable();
            names.dedup();
            ("required", json!(names))
        }),
        Just(("format", json!("date"))),
        Just(("propertyNames", json!({ "type": "string" }))),
    ];
    vec(keyword, 0..3).prop_map(|keywords| {
        keywords.into_iter().map(|(keyword, value)| (keyword.to_owned(), value)).collect()
    })
}

fn names() -> impl Strategy<Value = String> {
    select(vec!["a", "b", "é", "ab", ""]).prop_map(str::to_owned)
}

fn values() -> impl Strategy<Value = Value> {
    let numbers = [
        json!(-2),
        json!(0),
        json!(1),
        json!(2),
        json!(6),
        json!(0.5),
        json!(1.5),
        json!(2.0),
        json!(1e2),
        json!(-0.0),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(1e300),
    ];
    let leaf = prop_oneof![
        select(numbers.to_vec()),
        select(vec!["", "a", "é", "ab", "🦀🦀", "a\"b", "1"]).prop_map(|text| json!(text)),
        select(vec![json!(null), json!(true), json!(false)]),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..4).prop_map(Value::Array),
            btree_map(names(), inner, 0..4).prop_map(|fields| json!(fields)),
        ]
    })
}

/// Writes a value in one of the many ways that JSON has, as the styles say.
fn write(value: &Value, styles: &mut impl Iterator<Item = u8>, out: &mut String) {
    let style = styles.next().unwrap();
    match value {
        Value::Number(number)
            if number.as_i64().is_some_and(|integer| integer.unsigned_abs() < 1_000) =>
        {
            *out += &match style % 4 {
                0 => format!("{number}.0"),
                1 => format!("{number}e0"),
                2 if number.as_i64() != Some(0) => format!("{number}0E-1"),
                _ => number.to_string(),
            };
        }
        Value::String(text) if style.is_multiple_of(2) => {
            let escaped: String =
                text.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
            *out += &format!("\"{escaped}\"");
        }
        Value::Array(items) => {
            *out += "[ ";
            for (index, item) in items.iter().enumerate() {
                *out += if index > 0 { ", " } else { "" };
                write(item, styles, out);
            }
            *out += "]";
        }
        Value::Object(fields) => {
            *out += "{ ";
            // The last field first, so that the order of the text is not that of the tree.
            for (index, (name, field)) in fields.iter().rev().enumerate() {
                *out += if index > 0 { ", " } else { "" };
                write(&json!(name), styles, out);
                *out += ": ";
                write(field, styles, out);
            }
            *out += "}";
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            *out += &value.to_string();
        }
    }
}

//! Schemas that nobody would write, in every dialect.

use proptest::collection::vec;
use proptest::prelude::{Just, Strategy, any, prop_assert, prop_oneof};
use proptest::{proptest, sample};
use serde_json::{Map, Value, json};
use tooltape::dialect::{Advert, Dialect, export};

use crate::dialect_roundtrip::config;
use crate::provider_rules::violations;

/// A value for a keyword that takes no schema.
fn plain(keyword: &'static str) -> impl Strategy<Value = Value> {
    let number = sample::select(vec![json!(-1), json!(0), json!(2), json!(2.5)]);
    let count = sample::select(vec![json!(0), json!(1), json!(3)]);
    let scalar = sample::select(vec![json!("a"), json!(""), json!(1), json!(true), json!(null)]);
    let names = sample::subsequence(vec!["string", "integer", "number", "boolean"], 1..=3);
    let more = sample::subsequence(vec!["object", "array", "null"], 0..=3);
    match keyword {
        "type" => (names, more)
            .prop_map(|(names, more)| match [names, more].concat().as_slice() {
                [only] => json!(only),
                all => json!(all),
            })
            .boxed(),
        "enum" => vec(scalar, 1..4).prop_map(Value::Array).boxed(),
        "const" | "default" => scalar.boxed(),
        "required" => {
            sample::subsequence(vec!["a", "b c", "2"], 0..=3).prop_map(|all| json!(all)).boxed()
        }
        "minimum" | "exclusiveMaximum" => number.boxed(),
        "minLength" | "maxItems" | "minItems" | "minProperties" => count.boxed(),
        "pattern" => sample::select(vec![json!("^a"), json!("(?=b)")]).boxed(),
        "format" => sample::select(vec![json!("uint8"), json!("date"), json!("odd")]).boxed(),
        "nullable" | "uniqueItems" => any::<bool>().prop_map(Value::Bool).boxed(),
        "$ref" => {
            let places = ["#", "#/$defs/a", "#/$defs/b", "#/properties/a", "#/anyOf/0"];
            sample::select(places.to_vec()).prop_map(Value::from).boxed()
        }
        _ => Just(json!("Some text.")).boxed(),
    }
}

const PLAIN: [&str; 17] = [
    "type",
    "type",
    "enum",
    "const",
    "default",
    "required",
    "minimum",
    "exclusiveMaximum",
    "minLength",
    "maxItems",
    "minItems",
    "minProperties",
    "pattern",
    "format",
    "nullable",
    "uniqueItems",
    "description",
];

fn schemas() -> impl Strategy<Value = Value> {
    let keyword = sample::select(PLAIN.to_vec());
    let pair = keyword.prop_flat_map(|keyword| (Just(keyword.to_owned()), plain(keyword)));
    let leaf = vec(pair, 0..4).prop_map(|pairs| Value::Object(pairs.into_iter().collect()));
    let reference = plain("$ref").prop_map(|reference| json!({ "$ref": reference }));
    let leaf = prop_oneof![8 => leaf, 1 => any::<bool>().prop_map(Value::Bool), 2 => reference];
    leaf.prop_recursive(4, 32, 4, |inner| {
        let one = sample::select(vec!["items", "additionalProperties", "not", "propertyNames"]);
        let list = sample::select(vec!["anyOf", "oneOf", "allOf", "prefixItems"]);
        let named = sample::select(vec!["properties", "properties", "patternProperties", "$defs"]);
        let part = prop_oneof![
            (one, inner.clone()).prop_map(|(keyword, schema)| (keyword, schema)),
            (list, vec(inner.clone(), 1..4)).prop_map(|(keyword, all)| (keyword, all.into())),
            (named, inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(keyword, a, b, c)| { (keyword, json!({ "a": a, "b c": b, "2": c })) }),
        ];
        (inner, vec(part, 1..4)).prop_map(|(own, parts)| {
            let mut schema = own.as_object().cloned().unwrap_or_default();
            schema.extend(parts.into_iter().map(|(keyword, part)| (keyword.to_owned(), part)));
            Value::Object(schema)
        })
    })
}

proptest! {
    #![proptest_config(config(600))]

    #[test]
    fn what_compiles_keeps_its_providers_rules_and_compiles_again(
        schema in schemas(),
        a in schemas(),
        b in schemas(),
    ) {
        let mut schema = schema.as_object().cloned().unwrap_or_else(Map::new);
        schema.insert("$defs".into(), json!({ "a": a, "b": b }));
        let input = Value::Object(schema);
        let advert = Advert { name: "soup", description: "Eats.", input: &input };
        for dialect in Dialect::ALL {
            let Ok(exported) = export(dialect, &advert) else { continue };
            let found = violations(dialect, &exported.tool);
            prop_assert!(found.is_empty(), "{dialect} {input}\n{}\n{found:?}", exported.tool);
            let input = exported.compiled.schema();
            let again = export(dialect, &Advert { input, ..advert });
            prop_assert!(again.is_ok(), "{dialect} {input}: {again:?}");
            let again = again.expect("it was just checked");
            let found = violations(dialect, &again.tool);
            prop_assert!(found.is_empty(), "{dialect} {input}\n{}\n{found:?}", again.tool);
        }
    }
}

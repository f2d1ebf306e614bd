//! The canonical form of random values against another implementation of RFC 8785.

use proptest::prelude::*;
use serde_json::{Map, Value};
use tooltape::{Canon, Doc, Domain, Hash, Limits};

/// Integers up to here are the same in both implementations; ours keeps larger ones exactly.
const SAFE: i64 = (1 << 53) - 1;

fn any_text() -> impl Strategy<Value = String> {
    let characters = prop_oneof![
        any::<char>(),
        prop::char::range('\0', '\u{7f}'),
        prop::char::range('\u{d000}', '\u{d7ff}'),
        prop::char::range('\u{e000}', '\u{ffff}'),
        prop::char::range('\u{10000}', '\u{10fff}'),
    ];
    prop::collection::vec(characters, 0..6).prop_map(String::from_iter)
}

fn any_value() -> impl Strategy<Value = Value> {
    let double =
        any::<f64>().prop_filter("JSON has finite numbers only", |double| double.is_finite());
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-SAFE..=SAFE).prop_map(Value::from),
        double.prop_map(Value::from),
        any_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 60, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((any_text(), inner), 0..8)
                .prop_map(|fields| Value::from(Map::from_iter(fields))),
        ]
    })
}

/// Spells values in the many ways that are not canonical, always the same for the same seed.
struct Speller {
    seed: u64,
    text: String,
}

impl Speller {
    fn spell(value: &Value, seed: u64) -> String {
        let mut speller = Self { seed, text: String::new() };
        speller.value(value);
        speller.text
    }

    fn choose(&mut self, choices: usize) -> usize {
        self.seed = self.seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.seed >> 33) as usize % choices
    }

    fn space(&mut self) {
        let space = ["", " ", "", "\n", "\t \r\n"][self.choose(5)];
        self.text.push_str(space);
    }

    fn value(&mut self, value: &Value) {
        self.space();
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => self.text += &value.to_string(),
            Value::String(text) => self.string(text),
            Value::Array(items) => {
                self.text.push('[');
                for (position, item) in items.iter().enumerate() {
                    self.text.push_str(if position > 0 { "," } else { "" });
                    self.value(item);
                }
                self.text.push(']');
            }
            Value::Object(fields) => {
                let mut fields: Vec<_> = fields.iter().collect();
                let first = self.choose(fields.len().max(1));
                fields.rotate_left(first);
                self.text.push('{');
                for (position, (key, value)) in fields.into_iter().enumerate() {
                    self.text.push_str(if position > 0 { "," } else { "" });
                    self.space();
                    self.string(key);
                    self.space();
                    self.text.push(':');
                    self.value(value);
                }
                self.text.push('}');
            }
        }
        self.space();
    }

    fn string(&mut self, text: &str) {
        self.text.push('"');
        for character in text.chars() {
            if character < ' ' || "\"\\".contains(character) || self.choose(4) == 0 {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    let escape = match self.choose(2) {
                        0 => format!("\\u{unit:04x}"),
                        _ => format!("\\u{unit:04X}"),
                    };
                    self.text.push_str(&escape);
                }
            } else {
                self.text.push(character);
            }
        }
        self.text.push('"');
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn any_value_has_the_bytes_of_rfc_8785(value in any_value(), seed: u64) {
        let expected = serde_json_canonicalizer::to_string(&value).unwrap();
        let canon = Canon::of(&value).unwrap();
        prop_assert_eq!(canon.as_str(), &expected);

        let text = Speller::spell(&value, seed);
        let canon = Doc::read(&text, &Limits::default()).unwrap().canonical();
        prop_assert_eq!(canon.as_str(), &expected, "{}", text);

        let again = Doc::read(canon.as_str(), &Limits::default()).unwrap();
        prop_assert!(again.is_canonical());
        prop_assert_eq!(again.canonical(), canon.clone());
        prop_assert_eq!(canon.parse::<Value>().unwrap(), canon.to_value());
    }

    #[test]
    fn different_values_have_different_hashes(left in any_value(), right in any_value()) {
        let hash = |value: &Value| {
            Hash::of(Domain::Result, Canon::of(value).unwrap().as_str().as_bytes())
        };
        let same = serde_json_canonicalizer::to_string(&left).unwrap()
            == serde_json_canonicalizer::to_string(&right).unwrap();
        prop_assert_eq!(hash(&left) == hash(&right), same);
    }

    #[test]
    fn a_document_holds_what_another_parser_reads(value in any_value(), seed: u64) {
        let text = Speller::spell(&value, seed);
        let doc = Doc::read(&text, &Limits::default()).unwrap();
        let mut pairs = vec![(doc.root(), &value)];
        while let Some((node, value)) = pairs.pop() {
            let text = node.as_str();
            prop_assert_eq!(text.as_deref(), value.as_str());
            prop_assert_eq!(node.number_text().is_some(), value.is_number());
            if let Some(double) = value.as_f64() {
                prop_assert_eq!(node.as_f64(), Some(double));
            }
            if let Some(integer) = value.as_i64() {
                prop_assert_eq!(node.as_i64(), Some(integer));
            }
            if let Some(items) = value.as_array() {
                prop_assert_eq!(node.len(), items.len());
                pairs.extend(node.items().zip(items));
            }
            if let Some(fields) = value.as_object() {
                prop_assert_eq!(node.len(), fields.len());
                prop_assert_eq!(node.fields().count(), fields.len());
                for (name, field) in node.fields() {
                    let found = node.get(&name).map(|found| found.offset());
                    prop_assert_eq!(found, Some(field.offset()));
                    pairs.push((field, &fields[name.as_ref()]));
                }
            }
        }
    }
}

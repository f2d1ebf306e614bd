//! Whatever arguments a schema allows, a model can write them in each closed dialect.

use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, prop_oneof};
use proptest::{proptest, sample};
use serde_json::{Map, Value, json};
use tooltape::dialect::Dialect::{self, AnthropicStrict, Gemini, OpenAiStrict};
use tooltape::dialect::compile;

/// A type that has both a schema and values.
#[derive(Clone, Debug)]
enum Type {
    Text,
    Integer,
    Flag,
    Word,
    Nullable(Box<Type>),
    List(Box<Type>),
    Map(Box<Type>),
    Object(Vec<Field>),
    /// Objects that are told apart by their tag.
    Tagged(Vec<Vec<Field>>),
}

#[derive(Clone, Debug)]
struct Field {
    name: &'static str,
    is_required: bool,
    of: Type,
}

/// One value as the original schema has it, and as a dialect has it.
struct Written {
    plain: Value,
    compiled: Value,
}

impl Type {
    fn schema(&self) -> Value {
        match self {
            Type::Text => json!({ "type": "string", "minLength": 0 }),
            Type::Integer => json!({ "type": "integer", "format": "int32" }),
            Type::Flag => json!({ "type": "boolean" }),
            Type::Word => json!({ "type": "string", "enum": ["a", "b"] }),
            Type::Nullable(of) => json!({ "anyOf": [of.schema(), { "type": "null" }] }),
            Type::List(of) => json!({ "type": "array", "items": of.schema() }),
            Type::Map(of) => json!({ "type": "object", "additionalProperties": of.schema() }),
            Type::Object(fields) => object(fields, None),
            Type::Tagged(variants) => {
                let variants = variants.iter().enumerate();
                let branches = variants.map(|(index, fields)| object(fields, Some(index)));
                json!({ "oneOf": branches.collect::<Vec<_>>() })
            }
        }
    }

    /// A value of the type that the choices lead to.
    fn value(&self, dialect: Dialect, choices: &mut Choices) -> Written {
        let same = |value: Value| Written { plain: value.clone(), compiled: value };
        match self {
            Type::Text => same(json!(["", "x", "null", "é\"\\"][choices.below(4)])),
            Type::Integer => same(json!(choices.below(1000))),
            Type::Flag => same(json!(choices.below(2) == 0)),
            Type::Word => same(json!(["a", "b"][choices.below(2)])),
            Type::Nullable(of) => match choices.below(2) {
                0 => same(Value::Null),
                _ => of.value(dialect, choices),
            },
            Type::List(of) => {
                let items = (0..choices.below(3)).map(|_| of.value(dialect, choices));
                let (plain, compiled): (Vec<_>, Vec<_>) =
                    items.map(|item| (item.plain, item.compiled)).unzip();
                Written { plain: plain.into(), compiled: compiled.into() }
            }
            Type::Map(of) => {
                let (mut plain, mut entries) = (Map::new(), Vec::new());
                for key in ["k", "another key"].iter().take(choices.below(3)) {
                    let value = of.value(dialect, choices);
                    plain.insert((*key).to_owned(), value.plain);
                    entries.push(json!({ "key": key, "value": value.compiled }));
                }
                Written { plain: plain.into(), compiled: entries.into() }
            }
            Type::Object(fields) => written(fields, None, dialect, choices),
            Type::Tagged(variants) => {
                let index = choices.below(variants.len());
                written(&variants[index], Some(index), dialect, choices)
            }
        }
    }
}

fn object(fields: &[Field], tag: Option<usize>) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    if let Some(tag) = tag {
        properties.insert("tag".into(), json!({ "const": format!("v{tag}") }));
        required.push("tag");
    }
    for field in fields {
        properties.insert(field.name.into(), field.of.schema());
        if field.is_required {
            required.push(field.name);
        }
    }
    json!({ "type": "object", "properties": properties, "required": required })
}

fn written(
    fields: &[Field],
    tag: Option<usize>,
    dialect: Dialect,
    choices: &mut Choices,
) -> Written {
    let (mut plain, mut compiled) = (Map::new(), Map::new());
    if let Some(tag) = tag {
        plain.insert("tag".into(), json!(format!("v{tag}")));
        compiled.insert("tag".into(), json!(format!("v{tag}")));
    }
    for field in fields {
        // Of a property that may be absent or null, strict OpenAI can say only the latter.
        let is_certain = field.is_required || matches!(field.of, Type::Nullable(_));
        let alias = match dialect {
            Gemini => field.name.replace('-', "_"),
            _ => field.name.to_owned(),
        };
        if is_certain || choices.below(2) == 0 {
            let value = field.of.value(dialect, choices);
            plain.insert(field.name.into(), value.plain);
            compiled.insert(alias, value.compiled);
        } else if dialect == OpenAiStrict {
            compiled.insert(alias, Value::Null);
        }
    }
    Written { plain: plain.into(), compiled: compiled.into() }
}

/// Numbers that decide what a value looks like.
struct Choices(Vec<u8>);

impl Choices {
    fn below(&mut self, limit: usize) -> usize {
        self.0.pop().map_or(0, usize::from) % limit
    }
}

fn fields(of: impl Strategy<Value = Type> + Clone) -> impl Strategy<Value = Vec<Field>> + Clone {
    let names = sample::subsequence(vec!["a", "b-c", "d"], 0..=3);
    (names, vec((any::<bool>(), of), 3)).prop_map(|(names, parts)| {
        let field = |(name, (is_required, of))| Field { name, is_required, of };
        names.into_iter().zip(parts).map(field).collect()
    })
}

fn types() -> impl Strategy<Value = Type> {
    let leaf = sample::select(vec![Type::Text, Type::Integer, Type::Flag, Type::Word]);
    leaf.prop_recursive(4, 24, 3, |of| {
        let nullable = |of| match of {
            Type::Nullable(_) => of,
            of => Type::Nullable(Box::new(of)),
        };
        prop_oneof![
            of.clone().prop_map(nullable),
            of.clone().prop_map(|of| Type::List(Box::new(of))),
            of.clone().prop_map(|of| Type::Map(Box::new(of))),
            fields(of.clone()).prop_map(Type::Object),
            vec(fields(of), 2..=3).prop_map(Type::Tagged),
        ]
    })
}

/// So many cases; a failure prints what led to it, and leaves no file behind.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        max_shrink_iters: 5_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

proptest! {
    #![proptest_config(config(400))]

    #[test]
    fn arguments_survive_the_way_there_and_back(of in types(), bytes in vec(any::<u8>(), 64)) {
        let schema = of.schema();
        let frames = !matches!(of, Type::Object(_));
        for dialect in [OpenAiStrict, AnthropicStrict, Gemini] {
            let compiled = compile(&schema, dialect).unwrap();
            let mut choices = Choices(bytes.clone());
            let Written { plain, compiled: mut value } = of.value(dialect, &mut choices);
            if frames {
                value = json!({ "input": value });
            }
            prop_assert!(jsonschema::is_valid(&schema, &plain), "{schema} {plain}");
            // JSON Schema has no `nullable`, so Gemini's schemas cannot be asked.
            if dialect != Gemini {
                let is_valid = jsonschema::is_valid(compiled.schema(), &value);
                prop_assert!(is_valid, "{dialect} {} {value}", compiled.schema());
            }
            let restored = compiled.restore(&value.to_string()).into_owned();
            let restored = serde_json::from_str::<Value>(&restored).unwrap();
            prop_assert_eq!(restored, plain, "{} {}", dialect, compiled.schema());
        }
    }
}

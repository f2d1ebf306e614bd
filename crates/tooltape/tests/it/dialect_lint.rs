//! What a provider would refuse, said before a request is made.

use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};
use tooltape::dialect::Dialect::{self, Anthropic, AnthropicStrict, Gemini, OpenAi, OpenAiStrict};
use tooltape::dialect::{Advert, Severity, export, lint};

use crate::dialect::show;

/// Lints one tool that takes these arguments.
fn check(dialect: Dialect, name: &str, input: &Value, expected: Expect) {
    let lints = lint(dialect, &[Advert { name, description: "Does it.", input }]);
    let lines = lints.iter().map(|lint| format!("{lint}\n"));
    expected.assert_eq(&lines.collect::<String>());
}

/// The codes and severities for a name, with nothing else to complain about.
fn name_codes(dialect: Dialect, name: &str) -> Vec<(&'static str, Severity)> {
    let input = json!({ "type": "object", "properties": {} });
    let lints = lint(dialect, &[Advert { name, description: "Does it.", input: &input }]);
    lints.iter().map(|lint| (lint.code, lint.severity)).collect()
}

/// The codes of all findings that would fail a request.
fn errors(dialect: Dialect, inputs: &[Value]) -> Vec<&'static str> {
    let names = (0..inputs.len()).map(|index| format!("tool_{index}")).collect::<Vec<_>>();
    let advert = |(name, input): (_, _)| Advert { name, description: "Does it.", input };
    let adverts = names.iter().map(String::as_str).zip(inputs).map(advert).collect::<Vec<_>>();
    let lints = lint(dialect, &adverts);
    let errors = lints.iter().filter(|lint| lint.severity == Severity::Error);
    errors.map(|lint| lint.code).collect()
}

fn object(properties: Map<String, Value>) -> Value {
    let required = properties.keys().cloned().collect::<Vec<_>>();
    json!({ "type": "object", "properties": properties, "required": required })
}

#[test]
fn names_that_every_provider_takes_pass() {
    for (name, dialect) in ["a", "_", "read_file", "A-1"].map(|name| (name, Dialect::ALL)) {
        for dialect in dialect {
            assert_eq!(name_codes(dialect, name), [], "{dialect} {name}");
        }
    }
}

#[test]
fn names_are_of_64_letters_digits_and_dashes_at_openai() {
    let refused = [("name.refused", Severity::Error)];
    for name in ["", "a.b", "a b", "é", "a:b", &"a".repeat(65)] {
        assert_eq!(name_codes(OpenAi, name), refused, "{name}");
        assert_eq!(name_codes(OpenAiStrict, name), refused, "{name}");
    }
    assert_eq!(name_codes(OpenAi, "1a"), [("name.portable", Severity::Note)]);
}

#[test]
fn names_are_of_128_letters_digits_and_dashes_at_anthropic() {
    let refused = [("name.refused", Severity::Error)];
    for name in ["", "a.b", "a/b", &"a".repeat(129)] {
        assert_eq!(name_codes(Anthropic, name), refused, "{name}");
    }
    let long = [("name.long", Severity::Warning)];
    assert_eq!(name_codes(AnthropicStrict, &"a".repeat(128)), long);
}

#[test]
fn names_start_with_a_letter_and_may_have_dots_at_gemini() {
    for name in ["", "1a", "-a", "a/b", &"a".repeat(129)] {
        assert_eq!(name_codes(Gemini, name), [("name.refused", Severity::Error)], "{name}");
    }
    assert_eq!(name_codes(Gemini, "a.b:c"), [("name.portable", Severity::Note)]);
    assert_eq!(name_codes(Gemini, &"a".repeat(65)), [("name.long", Severity::Warning)]);
}

#[test]
fn names_of_mcp_may_have_dots() {
    assert_eq!(name_codes(Dialect::Plain, "a.b"), [("name.portable", Severity::Note)]);
    assert_eq!(name_codes(Dialect::Plain, "a:b"), [("name.refused", Severity::Warning)]);
}

#[test]
fn two_tools_with_one_name_are_refused() {
    let input = json!({ "type": "object" });
    let advert = Advert { name: "a", description: "Does it.", input: &input };
    let lints = lint(Gemini, &[advert, advert]);
    assert_eq!(
        lints[0].to_string(),
        "error[name.duplicate]: `a`: 2 tools have this name, expected one"
    );
}

#[test]
fn a_tool_without_a_description_is_warned_of() {
    let input = json!({ "type": "object" });
    let lints = lint(OpenAi, &[Advert { name: "a", description: " ", input: &input }]);
    assert_eq!((lints[0].code, lints[0].severity), ("description.empty", Severity::Warning));
}

#[test]
fn what_a_schema_loses_is_reported_with_its_weight() {
    let schema = json!({
        "type": "object",
        "properties": {
            "a": { "type": "string", "minLength": 1, "x-odd": 1 },
            "b": { "oneOf": [{ "type": "number" }, { "type": "integer" }] },
        },
        "required": ["a"],
        "additionalProperties": true,
    });
    check(
        OpenAiStrict,
        "tool",
        &schema,
        expect![[r#"
            warning[schema.narrowed]: `tool`: `additionalProperties` at `#` narrowed
            note[schema.moved]: `tool`: `minLength` at `#/properties/a` moved into the description
            warning[schema.dropped]: `tool`: `x-odd` at `#/properties/a` dropped
            warning[schema.widened]: `tool`: `oneOf` at `#/properties/b` widened
            note[schema.reshaped]: `tool`: the model writes another shape, which is restored
        "#]],
    );
    check(
        OpenAiStrict,
        "a",
        &json!({ "enum": 1 }),
        expect![[r#"
            error[schema.refused]: `a`: not a JSON Schema at `#/enum`: `1` is not of type "array"
        "#]],
    );
}

#[test]
fn openai_takes_128_tools() {
    let inputs = vec![json!({ "type": "object" }); 129];
    assert_eq!(errors(OpenAi, &inputs[..128]), Vec::<&str>::new());
    assert_eq!(errors(OpenAi, &inputs), ["openai.tools"]);
    assert_eq!(errors(OpenAiStrict, &inputs), ["openai.tools"]);
    assert_eq!(errors(Anthropic, &inputs), Vec::<&str>::new());
}

#[test]
fn openai_strict_takes_5000_properties() {
    let wide = |count: usize| {
        let names = (0..count).map(|index| (format!("p{index}"), json!({ "type": "string" })));
        [object(names.collect())]
    };
    assert_eq!(errors(OpenAiStrict, &wide(5_000)), Vec::<&str>::new());
    assert_eq!(errors(OpenAiStrict, &wide(5_001)), ["openai.strict.properties"]);
}

#[test]
fn openai_strict_takes_10_levels() {
    let deep = |levels: usize| {
        let mut schema = json!({ "type": "string" });
        for _ in 0..levels {
            schema = object(Map::from_iter([("a".to_owned(), schema)]));
        }
        [schema]
    };
    assert_eq!(errors(OpenAiStrict, &deep(10)), Vec::<&str>::new());
    assert_eq!(errors(OpenAiStrict, &deep(11)), ["openai.strict.levels"]);
    // A recursive type counts once.
    let list = json!({ "type": "object", "properties": { "next": { "$ref": "#" } } });
    assert_eq!(errors(OpenAiStrict, &[list]), Vec::<&str>::new());
}

#[test]
fn openai_strict_takes_120000_characters() {
    let long = |characters: usize| {
        let text = json!({ "type": "string", "const": "x".repeat(characters - 1) });
        [object(Map::from_iter([("a".to_owned(), text)]))]
    };
    assert_eq!(errors(OpenAiStrict, &long(120_000)), Vec::<&str>::new());
    assert_eq!(errors(OpenAiStrict, &long(120_001)), ["openai.strict.characters"]);
}

#[test]
fn openai_strict_takes_1000_enum_values_and_15000_characters_in_a_large_one() {
    let listed = |values: usize, width: usize| {
        let values = (0..values).map(|index| format!("{index:0width$}"));
        let text = json!({ "type": "string", "enum": values.collect::<Vec<_>>() });
        [object(Map::from_iter([("a".to_owned(), text)]))]
    };
    assert_eq!(errors(OpenAiStrict, &listed(1_000, 15)), Vec::<&str>::new());
    assert_eq!(errors(OpenAiStrict, &listed(1_001, 4)), ["openai.strict.enum-values"]);
    assert_eq!(errors(OpenAiStrict, &listed(251, 60)), ["openai.strict.enum-characters"]);
    assert_eq!(errors(OpenAiStrict, &listed(250, 61)), Vec::<&str>::new());
}

#[test]
fn anthropic_strict_has_budgets_for_a_whole_request() {
    let none = json!({ "type": "object", "properties": {} });
    let tools = vec![none; 21];
    assert_eq!(errors(AnthropicStrict, &tools[..20]), Vec::<&str>::new());
    assert_eq!(errors(AnthropicStrict, &tools), ["anthropic.strict.tools"]);
    let optional = |count: usize| {
        let names = (0..count).map(|index| (format!("p{index}"), json!({ "type": "string" })));
        json!({ "type": "object", "properties": names.collect::<Map<String, Value>>() })
    };
    assert_eq!(errors(AnthropicStrict, &[optional(12), optional(12)]), Vec::<&str>::new());
    let expected = ["anthropic.strict.optional"];
    assert_eq!(errors(AnthropicStrict, &[optional(12), optional(13)]), expected);
    let unions = |count: usize| {
        let either = [
            json!({ "type": ["string", "null"] }),
            json!({ "anyOf": [
            { "type": "string" }, { "type": "integer" },
        ] }),
        ];
        let names = (0..count).map(|index| (format!("p{index}"), either[index % 2].clone()));
        object(names.collect())
    };
    assert_eq!(errors(AnthropicStrict, &[unions(8), unions(8)]), Vec::<&str>::new());
    assert_eq!(errors(AnthropicStrict, &[unions(8), unions(9)]), ["anthropic.strict.unions"]);
}

#[test]
fn each_api_gets_a_tool_in_its_own_form() {
    let input = json!({ "type": "object", "properties": {} });
    let advert = Advert { name: "stop", description: "Stops.", input: &input };
    let mut lines = String::new();
    for dialect in Dialect::ALL {
        let tool = export(dialect, &advert).unwrap().tool;
        lines += &format!("{dialect}: {}\n", show(&tool, 0));
    }
    expect![[r#"
        openai: {
          "function": {
            "description": "Stops.",
            "name": "stop",
            "parameters": {"properties":{},"type":"object"}
          },
          "type": "function"
        }
        openai-strict: {
          "function": {
            "description": "Stops.",
            "name": "stop",
            "parameters": {
              "additionalProperties": false,
              "properties": {},
              "required": [],
              "type": "object"
            },
            "strict": true
          },
          "type": "function"
        }
        anthropic: {
          "description": "Stops.",
          "input_schema": {"properties":{},"type":"object"},
          "name": "stop"
        }
        anthropic-strict: {
          "description": "Stops.",
          "input_schema": {"additionalProperties":false,"properties":{},"type":"object"},
          "name": "stop",
          "strict": true
        }
        gemini: {
          "description": "Stops.",
          "name": "stop",
          "parameters": {"properties":{},"type":"object"}
        }
        plain: {
          "description": "Stops.",
          "input_schema": {"properties":{},"type":"object"},
          "name": "stop"
        }
    "#]]
    .assert_eq(&lines);
}

#[test]
fn a_dialect_is_read_as_it_is_written() {
    for dialect in Dialect::ALL {
        assert_eq!(dialect.to_string().parse(), Ok(dialect));
    }
    let err = "open-ai".parse::<Dialect>().unwrap_err();
    assert!(err.to_string().starts_with("unknown dialect `open-ai`, expected `openai`"), "{err}");
}

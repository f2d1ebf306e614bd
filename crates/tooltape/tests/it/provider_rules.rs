//! Each provider's rules about tools as they are published, checked with no code of the compiler.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use tooltape::dialect::Dialect;

const NUMERIC: [&str; 5] =
    ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"];
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// What a provider would say against a tool.
pub(crate) fn violations(dialect: Dialect, tool: &Value) -> Vec<String> {
    let mut rules = Violations { found: Vec::new(), root: Value::Null };
    match dialect {
        Dialect::OpenAi => rules.openai(tool),
        Dialect::OpenAiStrict => {
            rules.openai(tool);
            rules.demand(tool["function"]["strict"] == true, "", "`strict` is not set");
            let root = rules.root.clone();
            rules.each(&root, "", &mut openai_strict);
        }
        Dialect::Anthropic => rules.anthropic(tool),
        Dialect::AnthropicStrict => {
            rules.anthropic(tool);
            rules.demand(tool["strict"] == true, "", "`strict` is not set");
            let root = rules.root.clone();
            rules.each(&root, "", &mut anthropic_strict);
            let recurs = recurs(&root, &root, &mut Vec::new());
            rules.demand(!recurs, "", "a recursive schema");
        }
        Dialect::Gemini => {
            rules.name(&tool["name"], "_.:-", 128);
            rules.demand(starts_well(&tool["name"]), "", "the name starts badly");
            let fields = keys(tool).into_iter().collect::<BTreeSet<_>>();
            let known = BTreeSet::from(["description", "name", "parameters"]);
            rules.demand(fields == known, "", "other fields");
            rules.root = tool["parameters"].clone();
            let root = rules.root.clone();
            rules.demand(root["type"] == "object", "", "the root is no object");
            rules.each(&root, "", &mut gemini);
        }
        Dialect::Plain => {
            rules.name(&tool["name"], "_.-", 128);
        }
    }
    rules.found
}

struct Violations {
    found: Vec<String>,
    root: Value,
}

impl Violations {
    fn demand(&mut self, holds: bool, at: &str, reason: &str) {
        if !holds {
            self.found.push(format!("`{at}`: {reason}"));
        }
    }

    fn name(&mut self, name: &Value, more: &str, limit: usize) {
        let name = name.as_str().unwrap_or_default();
        let fits = (1..=limit).contains(&name.len())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter));
        self.demand(fits, "", "the name does not fit");
    }

    fn openai(&mut self, tool: &Value) {
        self.demand(tool["type"] == "function", "", "the type is not `function`");
        self.name(&tool["function"]["name"], "_-", 64);
        self.demand(tool["function"]["description"].is_string(), "", "no description");
        self.root = tool["function"]["parameters"].clone();
        let root = self.root.clone();
        self.plain_root(&root, &["oneOf", "anyOf", "allOf", "enum", "not"]);
        self.demand(root["properties"].is_object(), "", "the root says no properties");
        self.each(&root, "", &mut |rules, schema, at| {
            let is_array = schema.get("type").is_some_and(|kind| mentions(kind, "array"));
            let says = schema.contains_key("items") || schema.contains_key("prefixItems");
            rules.demand(!is_array || says, at, "an array without items");
        });
    }

    fn anthropic(&mut self, tool: &Value) {
        self.name(&tool["name"], "_-", 128);
        self.demand(tool["description"].is_string(), "", "no description");
        self.root = tool["input_schema"].clone();
        let root = self.root.clone();
        self.plain_root(&root, &["oneOf", "anyOf", "allOf"]);
        for name in keys(&root["properties"]) {
            let fits = (1..=64).contains(&name.len())
                && name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c));
            self.demand(fits, name, "a property name that does not fit");
        }
    }

    fn plain_root(&mut self, root: &Value, refused: &[&str]) {
        self.demand(root["type"] == "object", "", "the root is no object");
        for keyword in refused {
            self.demand(root.get(*keyword).is_none(), "", &format!("`{keyword}` at the root"));
        }
        let is_valid = jsonschema::draft202012::meta::is_valid(root);
        self.demand(is_valid, "", "no valid JSON Schema 2020-12");
        self.each(&root.clone(), "", &mut |rules, schema, at| {
            let Some(reference) = schema.get("$ref").and_then(Value::as_str) else { return };
            let target = reference.strip_prefix('#').and_then(|path| rules.root.pointer(path));
            rules.demand(target.is_some(), at, "a reference to nothing");
        });
    }

    /// Visits every subschema.
    fn each(&mut self, schema: &Value, at: &str, rule: &mut Rule<'_>) {
        let Value::Object(map) = schema else {
            return self.demand(schema.is_boolean(), at, "no schema");
        };
        rule(self, map, at);
        for (keyword, value) in map {
            let at = format!("{at}/{keyword}");
            match keyword.as_str() {
                "items" | "additionalProperties" | "not" | "propertyNames" => {
                    self.each(value, &at, rule);
                }
                "anyOf" | "oneOf" | "allOf" | "prefixItems" => {
                    for (index, branch) in value.as_array().into_iter().flatten().enumerate() {
                        self.each(branch, &format!("{at}/{index}"), rule);
                    }
                }
                "properties" | "$defs" | "definitions" | "patternProperties" => {
                    for (name, schema) in value.as_object().into_iter().flatten() {
                        self.each(schema, &format!("{at}/{name}"), rule);
                    }
                }
                _ => {}
            }
        }
    }

    fn only(&mut self, schema: &Map<String, Value>, allowed: &[&str], at: &str) {
        for keyword in schema.keys() {
            let is_allowed = allowed.contains(&keyword.as_str());
            self.demand(is_allowed, at, &format!("`{keyword}` is not supported"));
        }
    }

    /// Objects are closed, references stand alone, everything has a type.
    fn strict(&mut self, schema: &Map<String, Value>, at: &str) {
        let has = |keyword: &str| schema.contains_key(keyword);
        self.demand(!has("$ref") || schema.len() == 1, at, "something beside `$ref`");
        let is_typed = has("$ref") || has("anyOf") || has("type");
        self.demand(is_typed, at, "no type");
        let kind = schema.get("type").unwrap_or(&Value::Null);
        if mentions(kind, "object") {
            let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
            self.demand(is_closed && has("properties"), at, "an open object");
        }
        self.demand(!mentions(kind, "array") || has("items"), at, "an array without items");
    }
}

type Rule<'a> = dyn FnMut(&mut Violations, &Map<String, Value>, &str) + 'a;

fn openai_strict(rules: &mut Violations, schema: &Map<String, Value>, at: &str) {
    let mut allowed = NUMERIC.to_vec();
    allowed.extend(["type", "properties", "required", "additionalProperties", "items", "enum"]);
    allowed.extend(["const", "anyOf", "$ref", "$defs", "description", "title", "pattern"]);
    allowed.extend(["format", "minItems", "maxItems"]);
    rules.only(schema, &allowed, at);
    rules.strict(schema, at);
    if let Some(properties) = schema.get("properties") {
        let required = schema.get("required").cloned().unwrap_or_default();
        let required = required.as_array().into_iter().flatten().filter_map(Value::as_str);
        let required = required.collect::<BTreeSet<_>>();
        let declared = keys(properties).into_iter().collect::<BTreeSet<_>>();
        rules.demand(required == declared, at, "an optional property");
    }
    if let Some(format) = schema.get("format").and_then(Value::as_str) {
        rules.demand(FORMATS.contains(&format), at, "an unsupported format");
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str) {
        let looks_around = ["(?=", "(?!", "(?<"].iter().any(|group| pattern.contains(group));
        rules.demand(!looks_around, at, "a pattern that looks around");
    }
}

fn anthropic_strict(rules: &mut Violations, schema: &Map<String, Value>, at: &str) {
    let allowed = [
        "type",
        "properties",
        "required",
        "additionalProperties",
        "items",
        "enum",
        "anyOf",
        "$ref",
        "$defs",
        "description",
        "title",
        "format",
        "minItems",
    ];
    rules.only(schema, &allowed, at);
    rules.strict(schema, at);
    let few = schema.get("minItems").is_none_or(|least| least == 0 || least == 1);
    rules.demand(few, at, "more than one item demanded");
    let values = schema.get("enum").and_then(Value::as_array).into_iter().flatten();
    let simple = values.into_iter().all(|value| !value.is_object() && !value.is_array());
    rules.demand(simple, at, "a complex enum");
}

fn gemini(rules: &mut Violations, schema: &Map<String, Value>, at: &str) {
    let allowed = [
        "anyOf",
        "description",
        "enum",
        "example",
        "format",
        "items",
        "maxItems",
        "minItems",
        "maxLength",
        "minLength",
        "maxProperties",
        "minProperties",
        "maximum",
        "minimum",
        "nullable",
        "pattern",
        "properties",
        "propertyOrdering",
        "required",
        "title",
        "type",
    ];
    rules.only(schema, &allowed, at);
    if schema.contains_key("anyOf") {
        rules.demand(schema.len() == 1, at, "something beside `anyOf`");
        return;
    }
    let kind = schema.get("type").and_then(Value::as_str).unwrap_or_default();
    let known = ["string", "number", "integer", "boolean", "array", "object", "null"];
    rules.demand(known.contains(&kind), at, "no single type");
    if let Some(values) = schema.get("enum") {
        let values = values.as_array().map_or(&[] as &[Value], Vec::as_slice);
        let fits = values.iter().all(|value| value.as_str().is_some_and(|text| !text.is_empty()));
        rules.demand(fits && kind == "string", at, "an enum of other values than strings");
    }
    rules.demand(kind != "array" || schema.contains_key("items"), at, "an array without items");
    if let Some(format) = schema.get("format").and_then(Value::as_str) {
        let formats = ["date-time", "enum", "int32", "int64", "float", "double"];
        rules.demand(formats.contains(&format), at, "an unsupported format");
    }
    let declared = schema.get("properties").map(keys).unwrap_or_default();
    for name in &declared {
        let fits = (1..=64).contains(&name.len())
            && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_')
            && !name.starts_with(|first: char| first.is_ascii_digit());
        rules.demand(fits, at, &format!("the parameter name `{name}` does not fit"));
    }
    let is_written_out = schema.get("items").is_none_or(Value::is_object);
    rules.demand(is_written_out, at, "a boolean schema");
    for name in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        let is_declared = name.as_str().is_some_and(|name| declared.contains(&name));
        rules.demand(is_declared, at, &format!("{name} is required and not declared"));
    }
    rules.demand(kind == "object" || declared.is_empty(), at, "properties of no object");
}

fn recurs<'a>(schema: &'a Value, root: &'a Value, open: &mut Vec<&'a str>) -> bool {
    match schema {
        Value::Array(values) => values.iter().any(|value| recurs(value, root, open)),
        Value::Object(map) => {
            if let Some(reference) = map.get("$ref").and_then(Value::as_str) {
                if open.contains(&reference) {
                    return true;
                }
                open.push(reference);
                let target = root.pointer(&reference[1..]).expect("references lead somewhere");
                let found = recurs(target, root, open);
                open.pop();
                return found;
            }
            let parts = map.iter().filter(|(keyword, _)| *keyword != "$defs");
            parts.map(|(_, value)| value).any(|value| recurs(value, root, open))
        }
        _ => false,
    }
}

fn keys(value: &Value) -> Vec<&str> {
    value.as_object().into_iter().flatten().map(|(name, _)| name.as_str()).collect()
}

fn mentions(kind: &Value, name: &str) -> bool {
    kind == name || kind.as_array().is_some_and(|names| names.iter().any(|other| other == name))
}

fn starts_well(name: &Value) -> bool {
    let first = name.as_str().and_then(|name| name.chars().next());
    first.is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
}

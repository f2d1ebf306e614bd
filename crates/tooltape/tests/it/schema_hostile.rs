//! Schemas that mean harm: each is refused by name, or bounded when it is used.

use expect_test::{Expect, expect};
use serde_json::{Map, Value, json};
use tooltape::limits::{
    SCHEMA_BYTES_MAX, SCHEMA_CHAIN_MAX, SCHEMA_DEPTH_MAX, SCHEMA_NAMES_MAX, SCHEMA_PATTERNS_MAX,
    SCHEMA_VALUES_MAX, SCHEMA_WIDTH_MAX,
};
use tooltape::{Checker, Doc, Limits, SchemaError};

/// Shows how each schema is refused.
fn check(schemas: &[Value], expected: &Expect) {
    let mut shown = String::new();
    for schema in schemas {
        let err = Checker::compile(schema).err().expect("the schema is refused");
        shown += &format!("{schema}\n    {}: {err}\n", err.code());
    }
    expected.assert_eq(&shown);
}

fn refusal(schema: &Value) -> SchemaError {
    Checker::compile(schema).err().expect("the schema is refused")
}

fn is_valid(schema: &Value, text: &str) -> bool {
    let checker = Checker::compile(schema).expect("the schema compiles");
    checker.check(&Doc::read(text, &Limits::OWN).expect("the text is JSON")).is_ok()
}

/// `$defs` in which each of `count` definitions is made from the name of the next.
fn chain(count: usize, link: impl Fn(Value) -> Value) -> Value {
    let next = |index: usize| link(json!({ "$ref": format!("#/$defs/d{}", index + 1) }));
    let mut defs: Map<String, Value> =
        (0..count).map(|index| (format!("d{index}"), next(index))).collect();
    defs.insert(format!("d{count}"), json!({ "type": "string" }));
    json!({ "$defs": defs, "$ref": "#/$defs/d0" })
}

/// A schema nested in itself under a keyword, without recursion.
fn nested(count: usize, keyword: &str) -> Value {
    (0..count).fold(json!({}), |schema, _| {
        Value::Object([(keyword.to_owned(), schema)].into_iter().collect())
    })
}

#[test]
fn references_out_of_the_schema_are_not_followed() {
    check(
        &[
            json!({ "$ref": "http://169.254.169.254/latest/meta-data" }),
            json!({ "$ref": "file:///etc/passwd" }),
            json!({ "$ref": "other.json#/$defs/a" }),
            json!({ "$ref": "//host/x" }),
            json!({ "items": { "$id": "https://example.com/a/", "$ref": "b" } }),
            json!({ "$dynamicRef": "https://example.com/a#b" }),
            json!({ "$schema": "https://example.com/dialect" }),
            json!({ "$schema": "http://json-schema.org/draft-04/schema#" }),
            json!({ "items": { "$id": "a:b", "$schema": "file:///etc/passwd" } }),
        ],
        &expect![[r#"
            {"$ref":"http://169.254.169.254/latest/meta-data"}
                schema.remote_ref: the reference `http://169.254.169.254/latest/meta-data` leads out of the schema, and nothing is fetched
            {"$ref":"file:///etc/passwd"}
                schema.remote_ref: the reference `file:///etc/passwd` leads out of the schema, and nothing is fetched
            {"$ref":"other.json#/$defs/a"}
                schema.remote_ref: the reference `other.json#/$defs/a` leads out of the schema, and nothing is fetched
            {"$ref":"//host/x"}
                schema.remote_ref: the reference `//host/x` leads out of the schema, and nothing is fetched
            {"items":{"$id":"https://example.com/a/","$ref":"b"}}
                schema.remote_ref: the reference `https://example.com/a/b` leads out of the schema, and nothing is fetched
            {"$dynamicRef":"https://example.com/a#b"}
                schema.remote_ref: the reference `https://example.com/a` leads out of the schema, and nothing is fetched
            {"$schema":"https://example.com/dialect"}
                schema.unknown_dialect: the dialect `https://example.com/dialect` is unknown, expected draft 2020-12 or draft 7
            {"$schema":"http://json-schema.org/draft-04/schema#"}
                schema.unknown_dialect: the dialect `http://json-schema.org/draft-04/schema#` is unknown, expected draft 2020-12 or draft 7
            {"items":{"$id":"a:b","$schema":"file:///etc/passwd"}}
                schema.unknown_dialect: the dialect `file:///etc/passwd` is unknown, expected draft 2020-12 or draft 7
        "#]],
    );
    assert!(is_valid(
        &json!({ "enum": [{ "$ref": "http://example.com" }] }),
        r#"{"$ref":"http://example.com"}"#
    ));
}

#[test]
fn references_to_nowhere_are_refused() {
    check(
        &[
            json!({ "$ref": "#/$defs/gone" }),
            json!({ "$ref": "#gone" }),
            json!({ "$ref": "#%zz" }),
            json!({ "$id": "::" }),
        ],
        &expect![[r##"
            {"$ref":"#/$defs/gone"}
                schema.bad_ref: the reference `#/$defs/gone` leads nowhere
            {"$ref":"#gone"}
                schema.bad_ref: the reference `#gone` leads nowhere
            {"$ref":"#%zz"}
                schema.invalid: the schema is not valid: invalid URI reference '#%zz': invalid percent-encoded octet at index 1
            {"$id":"::"}
                schema.invalid: the schema is not valid: invalid URI reference '::': unexpected character at index 0
        "##]],
    );
}

#[test]
fn references_that_only_lead_to_themselves_are_refused() {
    check(
        &[
            json!({ "$ref": "#" }),
            json!({ "$ref": "" }),
            json!({ "allOf": [{ "$ref": "#" }] }),
            json!({ "$id": "https://example.com/a", "not": { "$ref": "a" } }),
            json!({ "$anchor": "a", "anyOf": [true, { "$ref": "#a" }] }),
            json!({ "$dynamicAnchor": "a", "if": { "$dynamicRef": "#a" } }),
            json!({
                "$defs": {
                    "a": { "$ref": "#/$defs/b" },
                    "b": { "oneOf": [{ "$ref": "#/$defs/a" }] },
                },
                "items": { "$ref": "#/$defs/a" },
            }),
        ],
        &expect![[r##"
            {"$ref":"#"}
                schema.cyclic_ref: `#` refers to itself without end
            {"$ref":""}
                schema.cyclic_ref: `#` refers to itself without end
            {"allOf":[{"$ref":"#"}]}
                schema.cyclic_ref: `#` refers to itself without end
            {"$id":"https://example.com/a","not":{"$ref":"a"}}
                schema.cyclic_ref: `#` refers to itself without end
            {"$anchor":"a","anyOf":[true,{"$ref":"#a"}]}
                schema.cyclic_ref: `#` refers to itself without end
            {"$dynamicAnchor":"a","if":{"$dynamicRef":"#a"}}
                schema.cyclic_ref: `#` refers to itself without end
            {"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"oneOf":[{"$ref":"#/$defs/a"}]}},"items":{"$ref":"#/$defs/a"}}
                schema.cyclic_ref: `#/$defs/a` refers to itself without end
        "##]],
    );
    let tree = json!({ "properties": { "next": { "$ref": "#" } }, "required": ["next"] });
    assert!(!is_valid(&tree, r#"{"next": {"next": {}}}"#));
}

#[test]
fn schemas_that_break_their_own_rules_are_refused() {
    check(
        &[
            json!(1),
            json!({ "type": "int" }),
            json!({ "minimum": "1" }),
            json!({ "required": "a" }),
            json!({ "properties": { "a": { "items": [{}] } } }),
            json!({ "$schema": 1 }),
            json!({ "$anchor": "a b" }),
        ],
        &expect![[r#"
            1
                schema.invalid: the schema is not valid: expected boolean or object, found number `1`
            {"type":"int"}
                schema.invalid: the schema is not valid: /type: `int` is not allowed, expected one of `array`, `boolean`, `integer`, `null`, `number`, `object`, `string`
            {"minimum":"1"}
                schema.invalid: the schema is not valid: /minimum: expected number, found string `"1"`: did you mean `1`?
            {"required":"a"}
                schema.invalid: the schema is not valid: /required: expected array, found string `"a"`
            {"properties":{"a":{"items":[{}]}}}
                schema.invalid: the schema is not valid: /properties/a/items: expected boolean or object, found array `[{}]`
            {"$schema":1}
                schema.invalid: the schema is not valid: /$schema: expected string, found number `1`: did you mean `"1"`?
            {"$anchor":"a b"}
                schema.invalid: the schema is not valid: /$anchor: expected text that matches `^[A-Za-z_][-A-Za-z0-9._]*$`, found string `"a b"`
        "#]],
    );
}

#[test]
fn only_patterns_that_run_in_linear_time_are_taken() {
    let patterns = ["(", "[z-a]", r"\p{Nope}", "a(?=b)", "(?<!a)b", r"(a)\1", r"(?<n>a)\k<n>"];
    let schemas: Vec<Value> =
        patterns.iter().map(|pattern| json!({ "pattern": pattern })).collect();
    check(
        &schemas,
        &expect![[r#"
        {"pattern":"("}
            schema.bad_pattern: the pattern `(` is not a regular expression
        {"pattern":"[z-a]"}
            schema.bad_pattern: the pattern `[z-a]` is not a regular expression
        {"pattern":"\\p{Nope}"}
            schema.bad_pattern: the pattern `\p{Nope}` is too large when compiled, or is not of the linear-time kind
        {"pattern":"a(?=b)"}
            schema.bad_pattern: the pattern `a(?=b)` looks around or refers back, which takes unbounded time
        {"pattern":"(?<!a)b"}
            schema.bad_pattern: the pattern `(?<!a)b` looks around or refers back, which takes unbounded time
        {"pattern":"(a)\\1"}
            schema.bad_pattern: the pattern `(a)\1` looks around or refers back, which takes unbounded time
        {"pattern":"(?<n>a)\\k<n>"}
            schema.bad_pattern: the pattern `(?<n>a)\k<n>` looks around or refers back, which takes unbounded time
    "#]],
    );
    check(
        &[
            json!({ "patternProperties": { "a(?!b)": {} } }),
            json!({ "pattern": "((a{100}){100}){100}" }),
            json!({ "pattern": r"^\p{L}{1,64}$" }),
        ],
        &expect![[r#"
            {"patternProperties":{"a(?!b)":{}}}
                schema.bad_pattern: the pattern `a(?!b)` looks around or refers back, which takes unbounded time
            {"pattern":"((a{100}){100}){100}"}
                schema.bad_pattern: the pattern `((a{100}){100}){100}` is too large when compiled, or is not of the linear-time kind
            {"pattern":"^\\p{L}{1,64}$"}
                schema.bad_pattern: the pattern `^\p{L}{1,64}$` is too large when compiled, or is not of the linear-time kind
        "#]],
    );
    let evil = json!({ "pattern": "(a+)+$" });
    assert!(!is_valid(&evil, &format!(r#""{}!""#, "a".repeat(100_000))));
    assert!(is_valid(&json!({ "pattern": r"\(\?=a\\1" }), r#""(?=a\\1""#));
}

#[test]
fn size_has_limits() {
    let deep = nested(SCHEMA_DEPTH_MAX + 1, "items");
    assert_eq!(refusal(&deep), SchemaError::TooDeep { max: SCHEMA_DEPTH_MAX });
    assert!(Checker::compile(&deep["items"]).is_ok());

    let long = json!({ "description": "x".repeat(SCHEMA_BYTES_MAX) });
    assert_eq!(refusal(&long), SchemaError::TooLarge { unit: "bytes", max: SCHEMA_BYTES_MAX });

    let many = json!({ "enum": (0..SCHEMA_VALUES_MAX).collect::<Vec<_>>() });
    assert_eq!(refusal(&many), SchemaError::TooLarge { unit: "values", max: SCHEMA_VALUES_MAX });

    let pattern = |index| json!({ "pattern": format!("{index}") });
    let patterns: Vec<Value> = (0..=SCHEMA_PATTERNS_MAX).map(pattern).collect();
    let err = refusal(&json!({ "prefixItems": patterns }));
    assert_eq!(err, SchemaError::TooLarge { unit: "patterns", max: SCHEMA_PATTERNS_MAX });
    assert!(Checker::compile(&json!({ "prefixItems": patterns[1..] })).is_ok());

    let anchor = |index| json!({ "$anchor": format!("a{index}") });
    let anchors: Vec<Value> = (0..=SCHEMA_NAMES_MAX).map(anchor).collect();
    let err = refusal(&json!({ "prefixItems": anchors }));
    assert_eq!(err, SchemaError::TooLarge { unit: "names", max: SCHEMA_NAMES_MAX });
}

#[test]
fn a_schema_a_hundred_thousand_levels_deep_is_refused() {
    let mut deep = nested(100_000, "not");
    assert_eq!(refusal(&deep), SchemaError::TooDeep { max: SCHEMA_DEPTH_MAX });
    // Dropping it whole would overflow the stack: `serde_json` recurses.
    while let Some(inner) = deep.get_mut("not").map(Value::take) {
        deep = inner;
    }
}

#[test]
fn no_value_meets_more_subschemas_than_the_limit() {
    for keyword in ["allOf", "anyOf", "oneOf"] {
        let many = json!({ keyword: vec![json!({}); 10_000] });
        let pointer = String::from("#");
        assert_eq!(refusal(&many), SchemaError::TooWide { pointer, max: SCHEMA_WIDTH_MAX });
        let laughs = chain(7, |next| json!({ keyword: [next, next, next] }));
        assert_eq!(refusal(&laughs).code(), "schema.too_wide");
    }
    let unevaluated = |count| {
        (0..count).fold(
            json!({}),
            |schema, _| json!({ "allOf": [schema], "unevaluatedProperties": false }),
        )
    };
    assert_eq!(refusal(&unevaluated(7)).code(), "schema.too_wide");
    assert!(is_valid(&unevaluated(5), "{}"));
    // The root and the last link count, too.
    assert!(is_valid(&chain(SCHEMA_CHAIN_MAX - 2, |next| next), r#""a""#));
    for count in [SCHEMA_CHAIN_MAX - 1, 5_000] {
        let err = refusal(&chain(count, |next| next));
        assert_eq!(err, SchemaError::TooDeep { max: SCHEMA_CHAIN_MAX });
    }
    // However it is reached: here the end of the chain is measured before its beginning.
    let mut far = chain(SCHEMA_CHAIN_MAX, |next| next);
    far["$ref"] = json!(format!("#/$defs/d{}", SCHEMA_CHAIN_MAX / 2));
    assert_eq!(refusal(&far), SchemaError::TooDeep { max: SCHEMA_CHAIN_MAX });
}

#[test]
fn a_long_or_wide_way_through_a_schema_does_no_harm() {
    let deep = format!("{}{{}}{}", r#"{"a":"#.repeat(120), "}".repeat(120));
    let long = chain(3_000, |next| json!({ "properties": { "a": next } }));
    assert!(is_valid(&long, &deep));
    let wide = chain(1_000, |next| json!({ "properties": { "a": next, "b": next } }));
    assert!(is_valid(&wide, &deep));
}

#[test]
fn the_deepest_check_fits_a_small_stack() {
    // Each level of the document is as many subschemas deep as a schema may be.
    let links = (SCHEMA_CHAIN_MAX - 2) / 2;
    let mut schema = chain(links, |next| json!({ "anyOf": [next] }));
    let last = format!("d{links}");
    schema["$defs"][last] = json!({
        "properties": { "a": { "$ref": "#/$defs/d0" } },
        "required": ["b"],
    });
    let depth = Limits::RESULT.depth;
    let text =
        |inside: &str| format!("{}{inside}{}", r#"{"b":0,"a":"#.repeat(depth), "}".repeat(depth));
    for slow in [false, true] {
        if slow {
            schema["x-unknown-to-the-walk"] = json!(true);
        }
        let (schema, valid, invalid) = (schema.clone(), text("1"), text("{}"));
        let small = std::thread::Builder::new().stack_size(2 << 20);
        let thread = small.spawn(move || (is_valid(&schema, &valid), is_valid(&schema, &invalid)));
        assert_eq!(thread.expect("a thread starts").join().expect("it fits"), (true, false));
    }
}

#[test]
fn documents_cannot_make_a_schema_run_away() {
    // Each level of the document is looked at twice by each level of the schema.
    let twice = json!({
        "$defs": { "e": { "anyOf": [
            { "properties": { "a": { "$ref": "#/$defs/e" } }, "required": ["b"] },
            { "properties": { "a": { "$ref": "#/$defs/e" } }, "required": ["c"] },
        ]}},
        "$ref": "#/$defs/e",
    });
    let deep = format!("{}1{}", r#"{"a":"#.repeat(120), "}".repeat(120));
    let doc = Doc::read(&deep, &Limits::OWN).expect("the text is JSON");
    for slow in [false, true] {
        let mut schema = twice.clone();
        if slow {
            schema["x-unknown-to-the-walk"] = json!(true);
        }
        let checker = Checker::compile(&schema).expect("the schema compiles");
        assert_eq!(checker.is_fast(), !slow);
        let mismatch = checker.check(&doc).expect_err("no level has `b` or `c`");
        assert!(mismatch.to_string().len() < 1_000);
    }
}

#[test]
fn work_is_counted_wherever_a_schema_can_multiply_it() {
    let many = |schema: Value| json!({ "anyOf": vec![schema; 900] });
    let mut listed: Vec<Value> = (0..10_000).map(|number| json!(number)).collect();
    listed.push(json!("x"));
    let long = json!({ "pattern": "y", "minLength": 1, "maxLength": 1_000_000 });
    let refs =
        json!({ "anyOf": vec![json!({ "$ref": "#/$defs/p" }); 450], "$defs": { "p": long } });
    let fields: Map<String, Value> = (0..15).map(|n| (format!("x{n}"), json!({}))).collect();
    let object: Map<String, Value> = (0..2_000).map(|n| (format!("{n:04}"), json!(n))).collect();
    let array = json!(vec!["x"; 3_000]).to_string();
    for (schema, text) in [
        (many(json!({ "uniqueItems": true })), &array),
        (many(json!({ "uniqueItems": true, "contains": true })), &array),
        (json!({ "items": { "enum": listed } }), &array),
        (refs, &json!("x".repeat(100_000)).to_string()),
        (
            many(json!({ "properties": fields, "required": ["y"], "patternProperties": {} })),
            &Value::Object(object).to_string(),
        ),
    ] {
        let checker = Checker::compile(&schema).expect("the schema compiles");
        let doc = Doc::read(text, &Limits::default()).expect("the text is JSON");
        let mismatch = checker.check(&doc).expect_err("it takes too long").to_string();
        assert!(mismatch.starts_with("expected a value that the schema allows"), "{mismatch}");
    }
}

//! A component that exports plain functions is a tool for each, with schemas from their types.

use serde_json::{Value, json};
use tooltape::{BoundKind, Determinism, Toolbox};
use tooltape_wasm::{Component, WasmError};

use crate::world::{block, call, toolbox, wasm};

/// A component whose functions are written as text. Each gives back what it takes.
fn component(text: &str) -> Result<Component, WasmError> {
    let core = r#"
      (core module $m
        (memory (export "memory") 2)
        (global $heap (mut i32) (i32.const 4096))
        (func (export "realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
          (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 15)) (i32.const -16)))
          (global.set $heap (i32.add (local.get $at) (local.get 3)))
          (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
            (then (drop (memory.grow (i32.const 200)))))
          (local.get $at))
        (func (export "i32") (param i32) (result i32) (local.get 0))
        (func (export "i64") (param i64) (result i64) (local.get 0))
        (func (export "f64") (param f64) (result f64) (local.get 0))
        (func (export "pair") (param i32 i32) (result i32)
          (i32.store (i32.const 64) (local.get 0))
          (i32.store offset=4 (i32.const 64) (local.get 1)) (i32.const 64))
        (func (export "triple") (param i32 i32 i32) (result i32)
          (i32.store8 (i32.const 64) (local.get 0))
          (i32.store offset=4 (i32.const 64) (local.get 1))
          (i32.store offset=8 (i32.const 64) (local.get 2)) (i32.const 64))
        (func (export "flood") (result i32)
          (i32.store (i32.const 64) (i32.const 4096))
          (i32.store offset=4 (i32.const 64) (i32.const 3000000))
          (drop (memory.grow (i32.const 200))) (i32.const 64))
        (func (export "add") (param i32 i32) (result i32)
          (i32.add (local.get 0) (local.get 1))))
      (core instance $i (instantiate $m))
      (alias core export $i "memory" (core memory $memory))
      (alias core export $i "realloc" (core func $realloc))"#;
    let wasm_bytes = wat::parse_str(format!("(component {core} {text})"));
    let wasm_bytes = wasm_bytes.unwrap_or_else(|err| panic!("{err}"));
    block(wasm().read("functions.wasm", &wasm_bytes))
}

/// A function of this type that gives back what it takes, as the core function of that name does.
fn echo(ty: &str, core: &str) -> String {
    let lift = format!(
        r#"(canon lift (core func $i "{core}") (memory $memory) (realloc (core func $realloc)))"#
    );
    format!(
        r#"(type $t {ty}) (export $e "t" (type $t))
        (func $f (param "value" $e) (result $e) {lift}) (export "echo-it" (func $f))"#
    )
}

/// A type is this schema, and takes and gives these values; it takes none of those.
#[track_caller]
fn check(ty: &str, core: &str, schema: Value, fit: &[Value], misfit: &[Value]) {
    let component = component(&echo(ty, core)).unwrap();
    let toolbox = toolbox(&component);
    let spec = toolbox.get("echo_it").unwrap().spec().clone();
    assert_eq!(spec.input["properties"]["value"], schema, "{ty}");
    assert_eq!(spec.effects.determinism, Determinism::Deterministic);
    let echoed = |value: &Value| {
        let args = json!({ "value": value }).to_string();
        block(call(&tooltape::Run::new(&toolbox), "echo_it", &args))
    };
    for value in fit {
        let reply = echoed(value);
        assert!(!reply.is_error, "{ty}: {value}: {}", reply.text());
        assert_eq!(&reply.value.as_ref().unwrap().to_value(), value, "{ty}");
    }
    for value in misfit {
        assert!(echoed(value).is_error, "{ty}: {value}");
    }
}

#[test]
fn numbers_and_texts() {
    let integer =
        |least: Value, most: Value| json!({ "type": "integer", "minimum": least, "maximum": most });
    let no = [json!("1"), json!(1.5), json!(null)];
    let u8s = [json!(0), json!(255)];
    check("u8", "i32", integer(json!(0), json!(255)), &u8s, &[json!(256), json!(-1)]);
    check("s8", "i32", integer(json!(-128), json!(127)), &[json!(-128)], &no);
    check("u16", "i32", integer(json!(0), json!(65535)), &[json!(65535)], &[json!(65536)]);
    check("s16", "i32", integer(json!(-32768), json!(32767)), &[json!(-32768)], &no);
    check("u32", "i32", integer(json!(0), json!(u32::MAX)), &[json!(u32::MAX)], &no);
    check("s32", "i32", integer(json!(i32::MIN), json!(i32::MAX)), &[json!(i32::MIN)], &no);
    check("u64", "i64", integer(json!(0), json!(u64::MAX)), &[json!(u64::MAX)], &[json!(-1)]);
    check("s64", "i64", integer(json!(i64::MIN), json!(i64::MAX)), &[json!(i64::MIN)], &no);
    check("f64", "f64", json!({ "type": "number" }), &[json!(1.5), json!(-0.1)], &[json!("x")]);
    check("bool", "i32", json!({ "type": "boolean" }), &[json!(true), json!(false)], &no);
    let char = json!({ "type": "string", "minLength": 1, "maxLength": 1 });
    check("char", "i32", char, &[json!("é")], &[json!(""), json!("ab")]);
    let text = json!({ "type": "string" });
    check("string", "pair", text, &[json!(""), json!("héllo")], &[json!(1)]);
}

#[test]
fn lists_and_records() {
    let byte = json!({ "type": "integer", "minimum": 0, "maximum": 255 });
    let bytes = json!({ "type": "array", "items": byte });
    check("(list u8)", "pair", bytes, &[json!([]), json!([1, 2])], &[json!([256]), json!("x")]);
    let object = json!({
        "type": "object",
        "properties": { "a": byte, "b": { "type": "boolean" } },
        "required": ["a", "b"],
        "additionalProperties": false,
    });
    let ty = r#"(record (field "a" u8) (field "b" bool))"#;
    // Two small fields come as two numbers and go back as two bytes: only zeroes are the same.
    check(ty, "pair", object, &[json!({ "a": 7, "b": false })], &[json!({ "a": 1 }), json!([])]);
    let pair = json!({ "type": "array", "prefixItems": [{ "type": "string" }], "minItems": 1,
                       "maxItems": 1 });
    check("(tuple string)", "pair", pair, &[json!(["x"])], &[json!([]), json!(["x", "y"])]);
}

#[test]
fn cases() {
    let text = json!({ "type": "string" });
    let option = json!({ "anyOf": [text, { "type": "null" }] });
    let texts = [json!("x"), json!(null)];
    check("(option string)", "triple", option, &texts, &[json!(3), json!({ "some": 1 })]);
    let names = json!({ "type": "string", "enum": ["red", "green"] });
    check(r#"(enum "red" "green")"#, "i32", names, &[json!("green")], &[json!("blue"), json!(0)]);
    let tagged = json!({ "type": "object", "properties": { "named": text },
                         "required": ["named"], "additionalProperties": false });
    let variant = json!({ "oneOf": [{ "const": "none" }, tagged] });
    check(
        r#"(variant (case "none") (case "named" string))"#,
        "triple",
        variant,
        &[json!("none"), json!({ "named": "x" })],
        &[json!("named"), json!({ "none": null }), json!({ "named": 3 })],
    );
    let flag = json!({ "type": "string", "enum": ["r", "w"] });
    let flags = json!({ "type": "array", "items": flag, "uniqueItems": true });
    let some = [json!([]), json!(["r"]), json!(["r", "w"])];
    check(r#"(flags "r" "w")"#, "i32", flags, &some, &[json!(["x"]), json!(["r", "r"])]);
}

/// The reply to a call of the function `go`.
fn go(text: &str, args: &str) -> tooltape::Reply {
    let toolbox: Toolbox = toolbox(&component(text).unwrap());
    block(call(&tooltape::Run::new(&toolbox), "go", args))
}

#[test]
fn several_parameters_are_several_arguments() {
    let text = r#"(func $f (param "a" s32) (param "b" s32) (result s32)
        (canon lift (core func $i "add"))) (export "go" (func $f))"#;
    assert_eq!(go(text, r#"{"a":40,"b":2}"#).text(), "42");
    assert!(go(text, r#"{"a":40}"#).is_error);
    assert!(go(text, r#"{"a":40,"b":2,"c":1}"#).is_error);
}

#[test]
fn an_answered_error_is_a_failure() {
    let text = r#"(func $f (param "failed" bool) (result (result))
        (canon lift (core func $i "i32"))) (export "go" (func $f))"#;
    assert_eq!(go(text, r#"{"failed":false}"#).text(), "null");
    assert_eq!(
        go(text, r#"{"failed":true}"#).text(),
        "failed: the function answered with an error"
    );
}

#[test]
fn a_number_that_json_has_not_is_no_result() {
    let text = r#"(core module $n (func (export "nan") (result f64) (f64.const nan)))
        (core instance $j (instantiate $n))
        (func $f (result f64) (canon lift (core func $j "nan"))) (export "go" (func $f))"#;
    let reply = go(text, "{}");
    assert_eq!(&*reply.fault.as_ref().unwrap().code, "output.malformed");
}

#[test]
fn a_flood_of_values_is_stopped() {
    let text = r#"(func $f (result (list u8)) (canon lift (core func $i "flood")
        (memory $memory))) (export "go" (func $f))"#;
    let reply = go(text, "{}");
    let fault = reply.fault.as_ref().unwrap();
    assert_eq!(fault.bound, Some(BoundKind::OutputBytes), "{}", reply.text());
}

#[test]
fn functions_of_an_interface_carry_its_name() {
    let text = r#"(func $f (param "a" s32) (param "b" s32) (result s32)
        (canon lift (core func $i "add")))
      (instance $n (export "add-up" (func $f)))
      (export "my:sums/number-kit@0.1.0" (instance $n))"#;
    let toolbox = toolbox(&component(text).unwrap());
    assert_eq!(toolbox.names().collect::<Vec<_>>(), ["number_kit_add_up"]);
}

#[test]
fn types_without_json_are_refused_by_name() {
    let refused = |text: &str| component(text).map(drop).unwrap_err().to_string();
    let resource = r#"(type $r (resource (rep i32))) (export $e "r" (type $r))
        (func $f (param "value" (own $e)) (result s32)
          (canon lift (core func $i "i32"))) (export "go" (func $f))"#;
    assert_eq!(
        refused(resource),
        "`functions.wasm` exports `go`, which cannot be a tool: it has a resource in its types, \
         which has no JSON"
    );
    let twice = echo("(option (option u8))", "triple");
    assert!(refused(&twice).contains("`option<option<_>>` has one `null` for two values"));
    let mut deep = "u8".to_owned();
    for _ in 0..20 {
        deep = format!("(list {deep})");
    }
    assert!(refused(&echo(&deep, "pair")).contains("its types are too large"));
    let wide = (0..16).fold("u8".to_owned(), |ty, _| format!("(tuple {ty} {ty})"));
    let wide = format!(
        r#"(func $f (param "value" (list {wide})) (result (list u8)) (canon lift
        (core func $i "pair") (memory $memory) (realloc (core func $realloc))))
        (export "go" (func $f))"#
    );
    assert!(refused(&wide).contains("its types are too large"));
}

#[test]
fn plain_functions_may_import_nothing_that_must_be_declared() {
    let text = r#"(import "tooltape:tool/clock@1.0.0" (instance
        (export "now-us" (func (result u64)))))
      (func $f (param "a" s32) (result s32) (canon lift (core func $i "i32")))
      (export "go" (func $f))"#;
    let refused = component(text).map(drop).unwrap_err();
    assert!(matches!(refused, WasmError::Imports { .. }), "{refused}");
}

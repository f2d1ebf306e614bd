//! The canonical form of values, and what can be done with it.

use std::collections::{BTreeMap, HashMap};

use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::json;
use serde_json::value::RawValue;
use tooltape::{CANON_PROFILE, Canon, Doc, Limits, Uncanonical};

#[derive(Serialize, Deserialize, Debug, PartialEq)]
#[serde(rename_all = "snake_case")]
enum Shape {
    Unit,
    Newtype(f64),
    Tuple(u8, String),
    Struct { z: i64, a: Option<bool> },
}

#[derive(Serialize)]
struct Report {
    title: String,
    id: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<u8>,
    shapes: Vec<Shape>,
    bytes: (u8, f32, char),
    by_number: BTreeMap<i32, &'static str>,
    nothing: (),
}

fn of<T: Serialize + ?Sized>(value: &T) -> String {
    Canon::of(value).expect("the value has a canonical form").as_str().to_owned()
}

fn refusal<T: Serialize + ?Sized>(value: &T) -> String {
    Canon::of(value).expect_err("the value has no canonical form").to_string()
}

#[test]
fn fields_are_ordered_whatever_the_order_of_their_declaration() {
    let report = Report {
        title: "a\"b\n\u{1}é😀".into(),
        id: u64::MAX,
        absent: None,
        shapes: vec![
            Shape::Unit,
            Shape::Newtype(1e30),
            Shape::Tuple(7, "x".into()),
            Shape::Struct { z: i64::MIN, a: None },
        ],
        bytes: (255, 0.1, '/'),
        by_number: BTreeMap::from([(-5, "minus five"), (10, "ten"), (9, "nine")]),
        nothing: (),
    };
    let expected = concat!(
        r#"{"by_number":{"-5":"minus five","10":"ten","9":"nine"},"bytes":[255,0.1,"/"],"#,
        r#""id":18446744073709551615,"nothing":null,"shapes":["unit",{"newtype":1e+30},"#,
        r#"{"tuple":[7,"x"]},{"struct":{"a":null,"z":-9223372036854775808}}],"#,
        r#""title":"a\"b\n\u0001é😀"}"#
    );
    assert_eq!(of(&report), expected);
    assert!(Doc::read(expected, &Limits::default()).unwrap().is_canonical());
}

#[test]
fn a_value_and_its_text_have_the_same_canonical_form() {
    for value in [
        json!(null),
        json!([1.0, -0.0, 1e21, 1e-7, 5e-324, 1.5, 123456789.0, 1152921504606846976.0]),
        json!({"\u{fb33}": 1, "😀": 2, "\n": 3, "": 4, "\"": 5}),
        json!({"b": {"d": 1, "c": [{"f": 1, "e": {}}]}, "a": []}),
        json!("\u{0}\u{7f}\u{2028}\\/"),
    ] {
        let text = value.to_string();
        assert_eq!(of(&value), Doc::read(&text, &Limits::default()).unwrap().canonical().as_str());
    }
    assert_eq!(of(&u128::MAX), u128::MAX.to_string());
    assert_eq!(of(&f32::MAX), "3.4028235e+38");
    assert_eq!(of(&16_777_216_f32), "16777216");
}

#[test]
fn a_number_that_is_not_finite_is_refused_anywhere() {
    assert_eq!(refusal(&f64::NAN), "found the number `NaN`, expected a finite one");
    assert_eq!(refusal(&[1.0, f64::INFINITY]), "found the number `inf`, expected a finite one");
    assert_eq!(refusal(&Some(f32::NEG_INFINITY)), "found the number `-inf`, expected a finite one");
    let hidden = HashMap::from([("a", vec![(Shape::Newtype(f64::NAN),)])]);
    assert!(refusal(&hidden).contains("NaN"));
}

#[test]
fn keys_that_have_no_text_are_refused_and_so_are_duplicates() {
    assert!(matches!(Canon::of(&HashMap::from([(vec![1], 1)])), Err(Uncanonical::Unwritable(_))));

    struct Twice(&'static [&'static str]);
    impl Serialize for Twice {
        fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            let mut map = serializer.serialize_map(None)?;
            self.0.iter().try_for_each(|key| map.serialize_entry(key, &1))?;
            map.end()
        }
    }
    assert_eq!(of(&Twice(&["b", "\n", "a"])), r#"{"\n":1,"a":1,"b":1}"#);
    // As written, a backslash comes after a space; what it stands for here comes before.
    assert_eq!(of(&Twice(&[" ", "\n"])), r#"{"\n":1," ":1}"#);
    for keys in [&["a", "a"][..], &["b", "a", "c", "b"], &["\n", "a", "\n"]] {
        match Canon::of(&[Twice(keys)]) {
            Err(Uncanonical::Unreadable(unreadable)) => {
                assert_eq!(unreadable.code(), "duplicate_key")
            }
            other => panic!("{keys:?} gave {other:?}"),
        }
    }
}

#[test]
fn what_is_deeper_or_longer_than_can_be_read_back_is_refused() {
    let deep =
        |depth: usize| {
            (0..depth).fold(json!(1), |value, level| {
                if level % 2 == 0 { json!([value]) } else { json!({"a": value}) }
            })
        };
    let deepest = Canon::of(&deep(Limits::OWN.depth)).unwrap();
    assert_eq!(deepest.to_value(), deep(Limits::OWN.depth));
    assert!(refusal(&deep(Limits::OWN.depth + 1)).contains("more than `127` deep"));
    assert!(refusal(&[deepest]).contains("deep"));

    let wide = vec![json!({"a": [1]}); 500];
    let text = of(&wide);
    assert!(Doc::read(&text, &Limits { depth: 3, ..Limits::default() }).unwrap().is_canonical());

    let zeros = vec![0_u8; Limits::OWN.nodes];
    let raw = RawValue::from_string("[0,0,0,0,0,0,0,0,0]".to_owned()).unwrap();
    assert!(Canon::of(&(&zeros[12..], &raw)).is_ok());
    assert!(refusal(&(&zeros[11..], &raw)).contains("values"));
    assert!(refusal(&(&zeros[21..], &raw, &raw)).contains("values"));
    assert!(refusal(&zeros).contains("more than `8388608` values"));
}

#[test]
fn json_from_elsewhere_is_made_canonical_where_it_stands() {
    let raw = |json: &str| RawValue::from_string(json.to_owned()).expect(json);
    let parts = vec![raw(r#"{"b": 1.0, "a": [ ]}"#), raw("9007199254740993"), raw("\"\\u00e9\"")];
    assert_eq!(of(&("x", &parts)), r#"["x",[{"a":[],"b":1},9007199254740993,"é"]]"#);
    assert!(refusal(&raw(r#"{"a":1,"a":2}"#)).contains("a second time"));
}

#[test]
fn a_canonical_text_stands_inside_others_as_it_is() {
    let canon = Doc::read(r#"{"id": 9007199254740993}"#, &Limits::default()).unwrap().canonical();
    let inside = BTreeMap::from([("args", &canon)]);
    assert_eq!(serde_json::to_string(&inside).unwrap(), r#"{"args":{"id":9007199254740993}}"#);
    assert_eq!(of(&inside), r#"{"args":{"id":9007199254740993}}"#);
    assert_eq!(canon.to_string(), r#"{"id":9007199254740993}"#);
    assert_eq!(format!("{canon:?}"), r#"Canon({"id":9007199254740993})"#);
}

#[test]
fn what_was_hashed_is_what_is_read_back() {
    let shapes = vec![Shape::Struct { z: 1 << 60, a: Some(true) }, Shape::Newtype(0.1)];
    let canon = Canon::of(&shapes).unwrap();
    assert_eq!(canon.parse::<Vec<Shape>>().unwrap(), shapes);
    assert_eq!(
        canon.to_value(),
        json!([{"struct": {"a": true, "z": 1_u64 << 60}}, {"newtype": 0.1}])
    );
    assert!(canon.parse::<Vec<u8>>().is_err());
    let longest = Doc::read(&"9".repeat(308), &Limits::default()).unwrap().canonical();
    assert_eq!(longest.to_value().as_f64(), Some(1e308));
}

#[test]
fn no_arguments_are_an_empty_object() {
    assert_eq!(Canon::empty_object(), Canon::of(&json!({})).unwrap());
    assert_eq!(Canon::empty_object().as_str(), "{}");
    assert_eq!(CANON_PROFILE, "jcs-int/1");
}

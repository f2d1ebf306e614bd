//! The canonical form of documents: order, spelling, sets.

use std::collections::BTreeMap;

use tooltape::{Doc, Limits, Sets};

fn canonical(text: &str) -> String {
    let doc = Doc::read(text, &Limits::default()).expect(text);
    let canon = doc.canonical();
    assert_eq!(doc.is_canonical(), text == canon.as_str(), "{text}");
    canon.as_str().to_owned()
}

fn check(text: &str, expected: &str) {
    assert_eq!(canonical(text), expected, "{text}");
    assert_eq!(canonical(expected), expected);
}

#[test]
fn white_space_and_the_order_of_keys_do_not_matter() {
    check(
        " { \"b\" : [ 1 , { \"d\" : null , \"c\" : true } ] ,\n\t\"a\" : \"x\" }\r\n",
        r#"{"a":"x","b":[1,{"c":true,"d":null}]}"#,
    );
    check(r#"{"aa":1,"a":2,"":3,"B":4}"#, r#"{"":3,"B":4,"a":2,"aa":1}"#);
    check(" [ ] ", "[]");
    check("{ }", "{}");
    check(" null", "null");
}

#[test]
fn the_order_of_items_matters() {
    assert_ne!(canonical("[1,2]"), canonical("[2,1]"));
}

#[test]
fn each_character_has_one_spelling() {
    check(
        r#""\u0000\u0008\u0009\u000A\u000B\u000c\u000D\u001F\u0020\u0022\u005c\/\u007f\u00E9""#,
        "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f \\\"\\\\/\u{7f}é\"",
    );
    check(r#"{"\ud83D\uDE00":"\ufb33","\t":1}"#, "{\"\\t\":1,\"😀\":\"\u{fb33}\"}");
    // Composed and decomposed characters stay different: the form changes no text.
    assert_ne!(canonical("\"\u{e9}\""), canonical("\"e\u{301}\""));
}

#[test]
fn keys_are_ordered_by_utf_16_code_units() {
    // As code points U+FB33 comes before U+1F600; as code units, D83D comes before FB33.
    check("{\"\u{fb33}\":1,\"😀\":2}", "{\"😀\":2,\"\u{fb33}\":1}");
    check("{\"x\u{e000}\":1,\"x\u{10000}\":2}", "{\"x\u{10000}\":2,\"x\u{e000}\":1}");
    check(
        "{\"\u{d7ff}\":1,\"\u{10ffff}\":2,\"\u{ffff}\":3}",
        "{\"\u{d7ff}\":1,\"\u{10ffff}\":2,\"\u{ffff}\":3}",
    );
    // Escapes are ordered by what they stand for: a line feed before a space, a quote after it.
    check(r#"{"a\"":1,"a ":2,"a\n":3,"a\u0000":4}"#, r#"{"a\u0000":4,"a\n":3,"a ":2,"a\"":1}"#);

    let characters =
        ['\0', ' ', '\\', 'z', '\u{80}', '\u{d7ff}', '\u{e000}', '\u{ffff}', '\u{10000}', '😀'];
    let mut keys: Vec<String> = Vec::new();
    for first in characters {
        keys.push(first.to_string());
        keys.extend(characters.iter().map(|second| format!("{first}{second}")));
    }
    let spelled = |key: &String| {
        let units: Vec<_> = key.encode_utf16().map(|unit| format!("\\u{unit:04x}")).collect();
        format!("\"{}\":0", units.concat())
    };
    let text = format!("{{{}}}", keys.iter().map(spelled).collect::<Vec<_>>().join(","));
    keys.sort_by(|left, right| left.encode_utf16().cmp(right.encode_utf16()));
    let canon = canonical(&text);
    let doc = Doc::read(&canon, &Limits::default()).unwrap();
    assert_eq!(doc.root().fields().map(|(key, _)| key.into_owned()).collect::<Vec<_>>(), keys);
    for key in &keys {
        assert!(doc.root().get(key).is_some(), "{key:?}");
    }
}

#[test]
fn arrays_that_are_sets_are_ordered_by_their_items_canonical_bytes() {
    let set = Sets { here: true, ..Sets::default() };
    let with = |text: &str, sets: &Sets| {
        let doc = Doc::read(text, &Limits::default()).expect(text);
        doc.canonical_with(sets).as_str().to_owned()
    };
    assert_eq!(
        with(r#"[ "b", 10, 9, {"z":1, "y":2}, "a" ]"#, &set),
        r#"["a","b",10,9,{"y":2,"z":1}]"#
    );
    assert_eq!(with(r#"["b","a"]"#, &Sets::default()), r#"["b","a"]"#);
    assert_eq!(with("[]", &set), "[]");
    assert_eq!(with(r#""scalar""#, &set), r#""scalar""#);
    assert_eq!(with("[2,1,2]", &set), "[1,2,2]");

    // Inner sets are put in order before they are compared.
    let sets = Sets { here: true, items: Some(Box::new(set.clone())), ..Sets::default() };
    assert_eq!(with("[[3,1],[2,1],[0]]", &sets), "[[0],[1,2],[1,3]]");

    let fields =
        BTreeMap::from([("tags".to_owned(), set.clone()), ("steps".to_owned(), Sets::default())]);
    let sets = Sets { fields, others: Some(Box::new(set)), ..Sets::default() };
    let text = r#"{"tags":[2,1],"steps":[2,1],"\u0074agged":[2,1]}"#;
    assert_eq!(with(text, &sets), r#"{"steps":[2,1],"tagged":[1,2],"tags":[1,2]}"#);
    assert_eq!(
        with(r#"{"steps":[1,{"tags":[2,1]}],"tags":[2,1]}"#, &sets),
        r#"{"steps":[1,{"tags":[2,1]}],"tags":[1,2]}"#
    );
}

#[test]
fn the_canonical_form_of_a_part_is_that_of_the_part_alone() {
    let doc = Doc::read(r#"{"a": {"c": 1, "b": [ 2.0 ]}}"#, &Limits::default()).unwrap();
    let part = doc.root().get("a").unwrap();
    assert_eq!(part.canonical().as_str(), canonical(part.raw()));
}

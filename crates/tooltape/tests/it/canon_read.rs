//! The strict reader: what it refuses, and what a document says of itself.

use std::collections::BTreeSet;

use tooltape::limits::{ARGUMENT_BYTES_MAX, DEPTH_MAX, INTEGER_DIGITS_MAX, NODES_MAX};
use tooltape::{Doc, Kind, Limits, Node, Unreadable};

fn read(text: &str) -> Result<Doc<'_>, Unreadable> {
    Doc::read(text, &Limits::default())
}

fn check_refused(text: &str, code: &str, at: usize, message: &str) {
    let unreadable = read(text).expect_err(text);
    assert_eq!((unreadable.code(), unreadable.at()), (code, at), "{text}");
    assert_eq!(unreadable.to_string(), message);
}

#[test]
fn a_key_that_repeats_another_is_refused_however_it_is_written() {
    check_refused(
        r#"{"a":1,"b":2,"a":1}"#,
        "duplicate_key",
        13,
        "found the key `a` a second time in one object, at line 1 column 14",
    );
    check_refused(
        r#"{"a":1,"\u0061":2}"#,
        "duplicate_key",
        7,
        "found the key `a` a second time in one object, at line 1 column 8",
    );
    check_refused(
        "{\"x\": [{\"é\\n\":1,\n \"\\u00e9\\u000a\":2}]}",
        "duplicate_key",
        19,
        r"found the key `é\n` a second time in one object, at line 2 column 2",
    );
    check_refused(
        r#"{"":1,"":2}"#,
        "duplicate_key",
        6,
        "found the key `` a second time in one object, at line 1 column 7",
    );
    let twice = format!("{{{0},{0}}}", format_args!("\"{}\":1", "k".repeat(100_000)));
    assert!(read(&twice).unwrap_err().to_string().len() < 200);
    assert!(read(r#"{"a":{"a":{"a":1}},"b":[{"a":1},{"a":1}]}"#).is_ok());
}

#[test]
fn half_a_surrogate_pair_is_refused() {
    for half in
        [r"\ud800", r"\udc00", r"\ud800\ud800", r"\ud800\u0041", r"\ud800x", r"\udfff\ud800"]
    {
        let value = format!("[\"ok{half}\"]");
        let unreadable = read(&value).unwrap_err();
        assert_eq!((unreadable.code(), unreadable.at()), ("lone_surrogate", 4), "{half}");
        assert_eq!(read(&format!("{{\"{half}\":1}}")).unwrap_err().code(), "lone_surrogate");
    }
    let pair = read(r#""\ud83d\ude00""#).unwrap();
    assert_eq!(pair.root().as_str().unwrap(), "😀");
}

#[test]
fn a_refusal_names_what_was_found_what_was_expected_and_where() {
    check_refused("", "empty", 0, "the text is empty, expected a JSON value");
    check_refused(" \n\t\r ", "empty", 0, "the text is empty, expected a JSON value");
    check_refused(
        "{\"a\": tru}",
        "syntax",
        9,
        "found `}`, expected `true`, `false` or `null`, at line 1 column 10",
    );
    check_refused("[1,\n2,,]", "syntax", 6, "found `,`, expected a value, at line 2 column 3");
    check_refused("{'a': 1}", "syntax", 1, "found `'`, expected a key in `\"`, at line 1 column 2");
    check_refused("[1 2]", "syntax", 3, "found `2`, expected `,` or `]`, at line 1 column 4");
    check_refused("{\"é\" 1}", "syntax", 6, "found `1`, expected `:`, at line 1 column 6");
    check_refused(
        "[01]",
        "syntax",
        2,
        "found `1`, expected no further digit after a leading `0`, at line 1 column 3",
    );
    check_refused(
        "\"a\tb\"",
        "syntax",
        2,
        r"found `\t`, expected an escape such as `\n`, at line 1 column 3",
    );
    check_refused(
        r#""\x""#,
        "syntax",
        2,
        r#"found `x`, expected one of `"\/bfnrtu` after `\`, at line 1 column 3"#,
    );
    check_refused(
        r#"{"path": "/tmp/a"#,
        "unfinished",
        16,
        r#"the text ends at line 1 column 17, expected `"`"#,
    );
    check_refused(
        "{\"a\":1}\n{\"a\":1}",
        "trailing_text",
        8,
        "found more text after the JSON value, at line 2 column 1",
    );
    check_refused(
        "1\0",
        "trailing_text",
        1,
        "found more text after the JSON value, at line 1 column 2",
    );
    check_refused(
        "\u{feff}{}",
        "byte_order_mark",
        0,
        "found a byte order mark, expected a JSON value",
    );
}

#[test]
fn every_text_that_was_cut_off_is_refused_as_unfinished() {
    let text = r#"{"a":[true,false,null,{"b\n\u00e9\ud83d\ude00":-1.5e+3}],"c":"é😀"}"#;
    assert!(read(text).is_ok());
    for end in (1..text.len()).filter(|end| text.is_char_boundary(*end)) {
        assert_eq!(read(&text[..end]).unwrap_err().code(), "unfinished", "{}", &text[..end]);
    }
}

#[test]
fn bytes_that_are_not_utf_8_are_refused() {
    let refused = Doc::read_bytes(b"[\"\xff\"]", &Limits::default()).unwrap_err();
    assert_eq!(refused, Unreadable::NotUtf8 { at: 2 });
    let encoded_surrogate = Doc::read_bytes(b"\"\xed\xa0\x80\"", &Limits::default());
    assert_eq!(encoded_surrogate.unwrap_err().code(), "not_utf8");
    let refused = Doc::read_bytes(b"\xef\xbb\xbf{}", &Limits::default()).unwrap_err();
    assert_eq!(refused, Unreadable::ByteOrderMark);
}

#[test]
fn each_limit_holds_exactly() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(read(&nested(DEPTH_MAX)).is_ok());
    check_refused(
        &nested(DEPTH_MAX + 1),
        "too_deep",
        64,
        "arrays and objects are nested more than `64` deep at line 1 column 65",
    );

    let string = |bytes: usize| format!("\"{}\"", "x".repeat(bytes - 2));
    assert!(read(&string(ARGUMENT_BYTES_MAX)).is_ok());
    check_refused(
        &string(ARGUMENT_BYTES_MAX + 1),
        "too_long",
        1048576,
        "the text has `1048577` bytes, expected at most `1048576`",
    );

    let array = |items: usize| format!("[{}1]", "1,".repeat(items - 1));
    assert!(read(&array(NODES_MAX - 1)).is_ok());
    assert_eq!(read(&array(NODES_MAX)).unwrap_err().code(), "too_many_nodes");

    let digits = |digits: usize| format!("[-{}]", "9".repeat(digits));
    assert!(read(&digits(INTEGER_DIGITS_MAX)).is_ok());
    check_refused(
        &digits(INTEGER_DIGITS_MAX + 1),
        "integer_too_long",
        1,
        "an integer has `309` digits, expected at most `308`, at line 1 column 2",
    );
}

#[test]
fn limits_can_be_narrowed_but_not_beyond_what_can_be_read_back() {
    let narrow = Limits { bytes: 9, depth: 1, nodes: 3, integer_digits: 2 };
    let code = |text| Doc::read(text, &narrow).map_err(|unreadable| unreadable.code());
    assert!(code("[1,-22]").is_ok());
    assert!(code(r#"{"a":1}"#).is_ok());
    assert_eq!(code("[100]").unwrap_err(), "integer_too_long");
    assert_eq!(code("[1.00e2]").unwrap_err(), "integer_too_long");
    assert_eq!(code("[[]]").unwrap_err(), "too_deep");
    assert_eq!(code("[1,1,1]").unwrap_err(), "too_many_nodes");
    assert_eq!(code("[        ]").unwrap_err(), "too_long");

    let wide = Limits {
        bytes: usize::MAX,
        depth: usize::MAX,
        nodes: usize::MAX,
        integer_digits: usize::MAX,
    };
    let deepest = "[".repeat(127) + &"]".repeat(127);
    let canon = Doc::read(&deepest, &wide).unwrap().canonical();
    assert_eq!(canon.to_value().to_string(), deepest);
    let bomb = "[".repeat(5_000_000);
    assert_eq!(Doc::read(&bomb, &wide).unwrap_err().at(), 127);
    let bomb = "{\"a\":".repeat(1_000_000);
    assert_eq!(Doc::read(&bomb, &wide).unwrap_err().code(), "too_deep");
    let long = "9".repeat(INTEGER_DIGITS_MAX + 1);
    assert_eq!(Doc::read(&long, &wide).unwrap_err().code(), "integer_too_long");
}

#[test]
fn two_hundred_thousand_keys_are_read_sorted_and_found() {
    const KEYS: usize = 200_000;
    // A common beginning and no order, plain and with escapes: quadratic if anything is.
    for prefix in ["key", r"k\u0065y"] {
        let field = |number: usize| format!("\"{prefix}{number:06}\":{number}");
        let fields: Vec<String> = (0..KEYS).map(|nth| field(nth * 77_777 % KEYS)).collect();
        let text = format!("{{{}}}", fields.join(","));
        let doc = Doc::read(&text, &Limits::RESULT).unwrap();
        let root = doc.root();
        assert_eq!((root.len(), root.fields().nth(1).unwrap().0.as_ref()), (KEYS, "key077777"));
        for number in (0..KEYS).step_by(1_001) {
            let found = root.get(&format!("key{number:06}")).and_then(|value| value.as_u64());
            assert_eq!(found, Some(number as u64));
        }
        assert!(root.get("key200000").is_none());
        let canon = doc.canonical();
        assert!(canon.as_str().starts_with(r#"{"key000000":0,"key000001":1,"key000002":2,"#));

        let repeated = format!("{},{}}}", text.trim_end_matches('}'), field(77));
        let refused = Doc::read(&repeated, &Limits::RESULT).unwrap_err();
        assert_eq!((refused.code(), refused.at()), ("duplicate_key", text.len()));
    }
}

#[test]
fn a_document_gives_its_values_as_they_were_written() {
    let text = r#" {"z": [1, "two\n", null, true, {}], "a": {"k": -1.50}, "\u0062": false} "#;
    let doc = read(text).unwrap();
    let root = doc.root();
    assert_eq!((doc.text(), doc.is_canonical()), (text, false));
    assert_eq!((root.kind(), root.len(), root.offset()), (Kind::Object, 3, 1));
    assert_eq!(root.raw(), text.trim());
    let names: Vec<_> = root.fields().map(|(name, _)| name.into_owned()).collect();
    assert_eq!(names, ["z", "a", "b"]);

    let items: Vec<Node<'_>> = root.get("z").unwrap().items().collect();
    let kinds: Vec<String> = items.iter().map(|item| item.kind().to_string()).collect();
    assert_eq!(kinds, ["number", "string", "null", "boolean", "object"]);
    assert_eq!(items[1].as_str().unwrap(), "two\n");
    assert_eq!(items[1].raw(), r#""two\n""#);
    assert_eq!(items[3].kind(), Kind::Bool(true));
    assert!(items[4].is_empty() && items[4].get("k").is_none() && items[0].get("k").is_none());

    let number = root.get("a").unwrap().get("k").unwrap();
    assert_eq!((number.number_text(), number.as_f64()), (Some("-1.50"), Some(-1.5)));
    assert_eq!(number.canonical().as_str(), "-1.5");
    assert_eq!(root.get("b").unwrap().kind(), Kind::Bool(false));
    assert_eq!(root.get("c").map(|node| node.offset()), None);
    assert_eq!(items[0].items().count() + items[0].fields().count() + root.items().count(), 0);
    assert_eq!(format!("{:?}", items[1]), "Node { kind: String, offset: 11, bytes: 7 }");
}

#[test]
fn a_number_is_an_integer_by_its_value_and_not_by_its_spelling() {
    let text = "[1, 1.0, 1e3, 10.50e1, -0, 0.5, 1.05e1, 18446744073709551615, \
                -9223372036854775808, 1e300, 123456789012345678901234567890, \"1\"]";
    let doc = read(text).unwrap();
    let numbers: Vec<_> = (doc.root().items())
        .map(|node| (node.is_integer(), node.as_i64(), node.as_u64()))
        .collect();
    let small = |value: u64| (true, Some(value as i64), Some(value));
    assert_eq!(
        numbers[..6],
        [small(1), small(1), small(1000), small(105), small(0), (false, None, None)]
    );
    assert_eq!(numbers[6], (false, None, None));
    assert_eq!(numbers[7], (true, None, Some(u64::MAX)));
    assert_eq!(numbers[8], (true, Some(i64::MIN), None));
    assert_eq!(numbers[9..11], [(true, None, None), (true, None, None)]);
    assert_eq!(numbers[11], (false, None, None));
    assert_eq!(doc.root().items().nth(10).unwrap().as_f64(), Some(1.2345678901234568e29));
}

#[test]
fn each_reason_has_its_own_code() {
    let long = "1".repeat(400);
    let texts = [
        "",
        "x",
        "[",
        "1 1",
        r#"{"a":1,"a":1}"#,
        r#""\ud800""#,
        "\u{feff}1",
        "[[",
        "[1]",
        &long,
        "1e999",
        "9007199254740992.5",
    ];
    let limits = |text: &str| match text {
        "[[" => Limits { depth: 1, ..Limits::default() },
        "[1]" => Limits { nodes: 1, ..Limits::default() },
        _ => Limits::default(),
    };
    let mut codes: BTreeSet<_> =
        texts.iter().map(|text| Doc::read(text, &limits(text)).unwrap_err().code()).collect();
    codes.insert(Doc::read_bytes(b"\xff", &Limits::default()).unwrap_err().code());
    codes.insert(Doc::read("12", &Limits { bytes: 1, ..Limits::default() }).unwrap_err().code());
    assert_eq!(codes.len(), texts.len() + 2);
}

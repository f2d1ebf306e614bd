//! Canonical bytes and hashes that must never change: tapes and approvals depend on them.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tooltape::{Canon, Doc, Domain, Hash, Limits};

/// A text, its canonical form, and the hash of that as arguments.
const TEXTS: [[&str; 3]; 6] = [
    ["{}", "{}", "801900bf1ae7f3a8d702fb3167fd6bd3d62b73fa4922e0e9d19bdd4a0939f1b3"],
    [
        r#" { "b" : 2 , "a" : 1.0 } "#,
        r#"{"a":1,"b":2}"#,
        "35a49599eef5e9e924f6e99f2b34166fa6f33987e6f991ad76909d4c3727b7a5",
    ],
    [
        r#"{"id":9007199254740993,"of":9007199254740992}"#,
        r#"{"id":9007199254740993,"of":9007199254740992}"#,
        "59b6599b68458596fd8c5869061814f97f607d4a9cc2100a775f9822b59153fe",
    ],
    [
        "[9007199254740993.0,1e21,1E-7,0.10,-0,123456789012345678901234567890]",
        "[9007199254740993,1e+21,1e-7,0.1,0,123456789012345678901234567890]",
        "2cf1ef1d9df9f68337ae580ac9eda4684f534be1972df6ddf2f6e8f8e312922c",
    ],
    [
        r#"{"\ufb33":"\u0007\/\u20ac","\ud83d\ude00":"é","\n":[true,false,null]}"#,
        "{\"\\n\":[true,false,null],\"😀\":\"é\",\"\u{fb33}\":\"\\u0007/€\"}",
        "c05f6fe613ac6f9e8e28e1726d97e6b30f50c082b55eb06dde211aacb75d8e87",
    ],
    [
        r#"{"z":{"y":{"x":[{"b":[],"a":{}}]}},"m":"path/to/file.txt"}"#,
        r#"{"m":"path/to/file.txt","z":{"y":{"x":[{"a":{},"b":[]}]}}}"#,
        "72b29f56a129cdf552a5d108ab08b939f92030c8ff50a82983b7b49a484bffe0",
    ],
];

/// The canonical form of `value()`, and the hash of that as a result.
const VALUE: [&str; 2] = [
    concat!(
        r#"[{"w":{"b":12345678.9,"c":0},"x":100,"y":1.1},"#,
        r#"{"apple":18446744073709551615,"c":[2.5,1e+21],"m":1,"zebra":0.30000000000000004},"#,
        r#"{"j":[],"k":1},{"a":2,"b":1},-9223372036854775808,5e-324,"text"]"#
    ),
    "82f991d7085c3566619ed74f33e0f95a5f797862102e999ac6cb180b4caf7be8",
];

/// The hash of `{}` in each domain.
const DOMAINS: [(Domain, &str); 8] = [
    (Domain::Arguments, "801900bf1ae7f3a8d702fb3167fd6bd3d62b73fa4922e0e9d19bdd4a0939f1b3"),
    (Domain::RawArguments, "9f89c5084189bc7d031f0926ec2800ffc34f22d7de8324ee67b7e8032671ca86"),
    (Domain::Result, "63358b9d2db92f8bf93f64d3bcb07b2809136e17233c48301cc25624d1fb76ec"),
    (Domain::Definition, "ef6751617dc457a3b649406a000b1a236f5d2dbb682c59256f0c0e5db217f93f"),
    (Domain::Event, "6d06ab3fb1513a5471c5021503e8e743eade94cd4fa51c6856c0d71b1de86fcf"),
    (Domain::Content, "7da9f8a0167a073af66d1fdb827838051b531f213a87f40dafd5c4639187f027"),
    (Domain::Policy, "4f97f0169ccb3d45838eaa61745158f26f54bb1e389398b2e857abc549d47c03"),
    (Domain::Plain, "6e46dd10defc9b56c29a6ec56b508c21f54c08192194e4df25bf36f0c9c3c279"),
];

#[derive(Serialize)]
struct Fields<'v> {
    zebra: f64,
    apple: u64,
    #[serde(flatten)]
    more: &'v Value,
}

/// A value made of all that features of `serde_json` could change: maps, numbers, raw JSON.
fn value() -> Value {
    let text = r#"{"y":1.10,"x":1e2,"w":{"c":-0.0,"b":12345678.9}}"#;
    let read: Value = serde_json::from_str(text).expect("it is JSON");
    let more = json!({"m": 1, "c": [2.50, 1e21]});
    let fields = Fields { zebra: 0.1 + 0.2, apple: u64::MAX, more: &more };
    let doc = Doc::read(r#"{"k": 1.0, "j": [ ]}"#, &Limits::default()).expect("it is JSON");
    json!([read, fields, doc.canonical(), {"b": 1, "a": 2}, i64::MIN, 5e-324, "text"])
}

/// Checks every golden text and hash.
pub(crate) fn check() {
    for [text, canonical, hash] in TEXTS {
        let canon = Doc::read(text, &Limits::default()).expect(text).canonical();
        assert_eq!(canon.as_str(), canonical);
        assert_eq!(Hash::of(Domain::Arguments, canon.as_str().as_bytes()).to_string(), hash);
        let raw: &RawValue = serde_json::from_str(text).expect(text);
        assert_eq!(Canon::of(raw).expect(text), canon);
    }
    let canon = Canon::of(&value()).expect("it has a canonical form");
    let hash = Hash::of(Domain::Result, canon.as_str().as_bytes());
    assert_eq!([canon.as_str(), &hash.to_string()], VALUE);
    for (domain, hash) in DOMAINS {
        assert_eq!(Hash::of(domain, b"{}").to_string(), hash, "{domain:?}");
    }
}

#[test]
fn canonical_bytes_and_hashes_are_those_of_every_earlier_version() {
    check();
}

//! Hashes: known answers, domains, and their text.

use std::collections::BTreeSet;

use tooltape::{Domain, Hash, NotAHash};

const DOMAINS: [Domain; 8] = [
    Domain::Arguments,
    Domain::RawArguments,
    Domain::Result,
    Domain::Definition,
    Domain::Event,
    Domain::Content,
    Domain::Policy,
    Domain::Plain,
];

#[test]
fn plain_hashes_are_those_of_blake3() {
    let input: Vec<u8> = (0..1024).map(|index| (index % 251) as u8).collect();
    for (len, expected) in [
        (0, "af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262"),
        (1, "2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213"),
        (1024, "42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7"),
    ] {
        assert_eq!(Hash::of(Domain::Plain, &input[..len]).to_string(), expected);
    }
}

#[test]
fn a_domain_is_a_key_of_blake3_that_anyone_can_use() {
    let expected = blake3::keyed_hash(b"tooltape/1 arguments............", b"{}");
    assert_eq!(Hash::of(Domain::Arguments, b"{}").as_bytes(), expected.as_bytes());
    let expected = blake3::keyed_hash(b"tooltape/1 event................", b"{}");
    assert_eq!(Hash::of(Domain::Event, b"{}").to_string(), expected.to_hex().as_str());
}

#[test]
fn the_same_bytes_have_another_hash_in_each_domain() {
    let hashes: BTreeSet<Hash> = DOMAINS.iter().map(|domain| Hash::of(*domain, b"{}")).collect();
    assert_eq!(hashes.len(), DOMAINS.len());
}

#[test]
fn a_hash_has_one_text() {
    let hash = Hash::of(Domain::Content, b"x");
    let text = hash.to_string();
    assert_eq!(text.len(), 64);
    assert_eq!((format!("{hash:?}"), text.parse()), (text.clone(), Ok(hash)));
    assert_eq!(Hash::from(*hash.as_bytes()), hash);
    let json = serde_json::to_string(&hash).unwrap();
    assert_eq!(json, format!("\"{text}\""));
    assert_eq!(serde_json::from_str::<Hash>(&json).unwrap(), hash);
    assert_eq!(serde_json::from_reader::<_, Hash>(json.as_bytes()).unwrap(), hash);

    for wrong in
        [&text.to_uppercase(), &text[1..], &format!("{text}0"), &text.replace(&text[..1], "g"), ""]
    {
        assert_eq!(wrong.parse::<Hash>(), Err(NotAHash), "{wrong}");
        assert!(serde_json::from_value::<Hash>((*wrong).into()).is_err());
    }
}

//! What holds for any bytes at all: the body of the fuzz target `canon`, run here on its corpus.

use serde_json::Value;
use serde_json::value::RawValue;
use tooltape::{Canon, Doc, Limits, Node};

/// Checks all that must hold of some bytes, whatever they are.
pub(crate) fn check(bytes: &[u8]) {
    let doc = match Doc::read_bytes(bytes, &Limits::default()) {
        Ok(doc) => doc,
        Err(unreadable) => {
            let message = unreadable.to_string();
            assert!(message.len() < 500 && !message.contains('\n'), "{message}");
            assert!(unreadable.at() <= bytes.len());
            if ["empty", "syntax", "unfinished", "trailing_text"].contains(&unreadable.code()) {
                let other = serde_json::from_slice::<Value>(bytes);
                assert!(other.is_err(), "another parser accepts what gave: {message}");
            }
            return;
        }
    };
    let canon = doc.canonical();
    assert_eq!(doc.is_canonical(), doc.text() == canon.as_str());
    let again = Doc::read(canon.as_str(), &Limits::default()).expect("canonical text is accepted");
    assert!(again.is_canonical());
    assert_eq!(again.canonical(), canon);

    let text = doc.text();
    let raw: &RawValue = serde_json::from_str(text).expect("another parser accepts it too");
    assert_eq!(Canon::of(raw).expect("it was accepted before"), canon);
    let value: Value = serde_json::from_str(text).expect("another parser accepts it too");
    assert_same(doc.root(), &value);
    assert_same(again.root(), &canon.to_value());
}

/// Checks that a value is what another parser read, but for integers that it cannot hold.
fn assert_same(root: Node<'_>, value: &Value) {
    let mut pairs = vec![(root, value)];
    while let Some((node, value)) = pairs.pop() {
        assert_eq!(node.as_str().as_deref(), value.as_str());
        assert_eq!(node.as_f64(), value.as_f64());
        let items = value.as_array().map_or(&[][..], Vec::as_slice);
        assert_eq!(node.items().count(), items.len());
        pairs.extend(node.items().zip(items));
        assert_eq!(node.fields().count(), value.as_object().map_or(0, |fields| fields.len()));
        for (name, field) in node.fields() {
            assert_eq!(node.get(&name).map(|found| found.offset()), Some(field.offset()));
            pairs.push((field, &value[name.as_ref()]));
        }
    }
}

#[test]
fn every_file_of_the_corpus_keeps_the_rules_for_any_bytes() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/canon");
    let files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 20, "the corpus has {} files", files.len());
    for file in files {
        let bytes = std::fs::read(&file).unwrap();
        check(&bytes);
        // Cut short and with one byte changed, most of them are refused, each in its own way.
        for at in 0..bytes.len().min(400) {
            check(&bytes[..at]);
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            check(&changed);
        }
    }
}

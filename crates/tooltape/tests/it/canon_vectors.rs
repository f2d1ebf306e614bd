//! The canonical form against published vectors.

use std::fs;
use std::io::Read;
use std::path::Path;

use flate2::read::GzDecoder;
use tooltape::{Doc, Limits, Unreadable};

use crate::data;

/// Files of the suite that must be accepted by a JSON parser, and that a named rule refuses.
const REFUSED_BY_RULE: [(&str, &str); 2] = [
    ("y_object_duplicated_key.json", "duplicate_key"),
    ("y_object_duplicated_key_and_value.json", "duplicate_key"),
];

#[test]
fn rfc_8785_examples_have_their_published_bytes() {
    let Some(folder) = data::folder(6) else { return };
    let mut names: Vec<_> = names(&folder.join("jcs/input")).collect();
    names.sort();
    assert_eq!(names.len(), 6);
    for name in names {
        let input = fs::read(folder.join("jcs/input").join(&name)).unwrap();
        let output = fs::read_to_string(folder.join("jcs/output").join(&name)).unwrap();
        let doc = Doc::read_bytes(&input, &Limits::default()).unwrap();
        assert_eq!(doc.canonical().as_str(), output, "{name}");

        let outhex = Path::new(&name).with_extension("txt");
        let outhex = fs::read_to_string(folder.join("jcs/outhex").join(outhex)).unwrap();
        let hex: Vec<_> = output.bytes().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, outhex.split_whitespace().collect::<Vec<_>>(), "{name}");
    }
}

#[test]
fn ten_thousand_doubles_have_their_published_text() {
    let Some(folder) = data::folder(10_000) else { return };
    let file = fs::File::open(folder.join("jcs/es6-numbers-10k.txt.gz")).unwrap();
    let mut lines = String::new();
    GzDecoder::new(file).read_to_string(&mut lines).unwrap();
    assert_eq!(lines.lines().count(), 10_000);
    for line in lines.lines() {
        let (bits, expected) = line.split_once(',').unwrap();
        let double = f64::from_bits(u64::from_str_radix(bits, 16).unwrap());
        // As `1.5e300`, and as plain text such as `150000…000.0`: the shortest digits both times.
        for literal in [format!("{double:e}"), format!("{double}")] {
            let literal = if literal.contains(['.', 'e']) { literal } else { literal + ".0" };
            let doc = Doc::read(&literal, &Limits::default()).unwrap();
            assert_eq!(doc.canonical().as_str(), expected, "{literal}");
        }
        assert!(Doc::read(expected, &Limits::default()).unwrap().is_canonical(), "{expected}");
    }
}

#[test]
fn every_file_of_the_parsing_suite_is_accepted_or_refused_as_it_must_be() {
    let Some(folder) = data::folder(318) else { return };
    let folder = folder.join("json-parsing/test_parsing");
    let (mut accepted, mut refused, mut free) = (0, 0, 0);
    for name in names(&folder) {
        let bytes = fs::read(folder.join(&name)).unwrap();
        let read = Doc::read_bytes(&bytes, &Limits::default());
        let by_rule = REFUSED_BY_RULE.iter().find(|(file, _)| *file == name);
        match (name.as_bytes()[0], by_rule) {
            (b'y', None) => {
                assert!(read.is_ok(), "{name}: {}", read.unwrap_err());
                accepted += 1;
            }
            (b'y', Some((_, code))) => {
                assert_eq!(read.unwrap_err().code(), *code, "{name}");
                accepted += 1;
            }
            (b'n', _) => {
                assert_bounded(&read.expect_err(&name));
                refused += 1;
            }
            (b'i', _) => {
                if let Err(unreadable) = &read {
                    assert_bounded(unreadable);
                }
                free += 1;
            }
            _ => panic!("the suite has no file `{name}`"),
        }
    }
    assert_eq!((accepted, refused, free), (95, 188, 35));
}

/// A message is one short line whatever the text was.
fn assert_bounded(unreadable: &Unreadable) {
    let message = unreadable.to_string();
    assert!(message.len() < 200 && !message.contains(char::is_control), "{message}");
}

fn names(folder: &Path) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    entries.map(|entry| {
        let name = entry.expect("the folder can be listed").file_name();
        name.into_string().expect("the names are UTF-8")
    })
}

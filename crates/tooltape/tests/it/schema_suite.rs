//! The JSON-Schema-Test-Suite, drafts 2020-12 and 7, through `Checker`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use expect_test::{Expect, expect};
use serde_json::{Value, json};
use tooltape::{Checker, Doc, Limits};

use crate::data;

pub(crate) const DRAFT_7: &str = "http://json-schema.org/draft-07/schema#";

/// A group of the suite: one schema and the documents to hold against it.
pub(crate) struct Group {
    pub(crate) file: String,
    name: String,
    pub(crate) schema: Value,
    pub(crate) tests: Vec<Value>,
}

/// The groups of one draft, whose dialect is written into the schemas that do not name theirs.
pub(crate) fn groups(folder: &Path, draft: &str, dialect: Option<&str>) -> Vec<Group> {
    let mut files: Vec<_> = fs::read_dir(folder.join("json-schema-test-suite/tests").join(draft))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .collect();
    files.sort();
    let mut groups = Vec::new();
    for file in files {
        let stem = file.file_stem().unwrap().to_str().unwrap();
        let read: Vec<Value> = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        for group in read {
            let mut schema = group["schema"].clone();
            if let (Some(dialect), Some(object)) = (dialect, schema.as_object_mut()) {
                object.entry("$schema").or_insert_with(|| json!(dialect));
            }
            groups.push(Group {
                file: stem.to_owned(),
                name: format!("{stem}: {}", group["description"].as_str().unwrap()),
                schema,
                tests: group["tests"].as_array().unwrap().clone(),
            });
        }
    }
    groups
}

#[derive(Default)]
struct Tally {
    right: usize,
    fast: usize,
    wrong: Vec<String>,
    refused: BTreeMap<String, Vec<String>>,
}

fn run(groups: &[Group]) -> Tally {
    let mut tally = Tally::default();
    for group in groups {
        let checker = match Checker::compile(&group.schema) {
            Ok(checker) => checker,
            Err(err) => {
                tally.refused.entry(err.code().into()).or_default().push(group.name.clone());
                continue;
            }
        };
        for test in &group.tests {
            let text = serde_json::to_string(&test["data"]).unwrap();
            let verdict =
                Doc::read(&text, &Limits::default()).map(|doc| checker.check(&doc).is_ok());
            if verdict.is_ok_and(|valid| valid == test["valid"]) {
                tally.right += 1;
                tally.fast += usize::from(checker.is_fast());
            } else {
                tally.wrong.push(format!("{} / {}", group.name, test["description"]));
            }
        }
    }
    tally
}

fn check(draft: &str, dialect: Option<&str>, expected: &Expect) {
    let Some(folder) = data::folder(1) else { return };
    let tally = run(&groups(&folder, draft, dialect));
    let mut shown = format!("right: {}, of these by the walk: {}\n", tally.right, tally.fast);
    for wrong in &tally.wrong {
        shown += &format!("WRONG {wrong}\n");
    }
    for (code, names) in &tally.refused {
        for name in names {
            shown += &format!("{code}: {name}\n");
        }
    }
    expected.assert_eq(&shown);
}

#[test]
fn every_test_of_draft_2020_12_comes_out_right_or_is_refused_by_name() {
    check(
        "draft2020-12",
        None,
        &expect![[r#"
        right: 1250, of these by the walk: 691
        schema.remote_ref: dynamicRef: strict-tree schema, guards against misspelled properties
        schema.remote_ref: dynamicRef: tests for implementation dynamic anchor and reference link
        schema.remote_ref: dynamicRef: $ref and $dynamicAnchor are independent of order - $defs first
        schema.remote_ref: dynamicRef: $ref and $dynamicAnchor are independent of order - $ref first
        schema.remote_ref: dynamicRef: $ref to $dynamicRef finds detached $dynamicAnchor
        schema.remote_ref: refRemote: remote ref
        schema.remote_ref: refRemote: fragment within remote ref
        schema.remote_ref: refRemote: anchor within remote ref
        schema.remote_ref: refRemote: ref within remote ref
        schema.remote_ref: refRemote: base URI change
        schema.remote_ref: refRemote: base URI change - change folder
        schema.remote_ref: refRemote: base URI change - change folder in subschema
        schema.remote_ref: refRemote: root ref in remote ref
        schema.remote_ref: refRemote: remote ref with ref to defs
        schema.remote_ref: refRemote: Location-independent identifier in remote ref
        schema.remote_ref: refRemote: retrieved nested refs resolve relative to their URI not $id
        schema.remote_ref: refRemote: remote HTTP ref with different $id
        schema.remote_ref: refRemote: remote HTTP ref with different URN $id
        schema.remote_ref: refRemote: remote HTTP ref with nested absolute ref
        schema.remote_ref: refRemote: $ref to $ref finds detached $anchor
        schema.unknown_dialect: vocabulary: schema that uses custom metaschema with with no validation vocabulary
        schema.unknown_dialect: vocabulary: ignore unrecognized optional vocabulary
    "#]],
    );
}

#[test]
fn every_test_of_draft_7_comes_out_right_or_is_refused_by_name() {
    check(
        "draft7",
        Some(DRAFT_7),
        &expect![[r#"
        right: 904, of these by the walk: 644
        schema.remote_ref: refRemote: remote ref
        schema.remote_ref: refRemote: fragment within remote ref
        schema.remote_ref: refRemote: ref within remote ref
        schema.remote_ref: refRemote: base URI change
        schema.remote_ref: refRemote: base URI change - change folder
        schema.remote_ref: refRemote: base URI change - change folder in subschema
        schema.remote_ref: refRemote: root ref in remote ref
        schema.remote_ref: refRemote: remote ref with ref to definitions
        schema.remote_ref: refRemote: Location-independent identifier in remote ref
        schema.remote_ref: refRemote: retrieved nested refs resolve relative to their URI not $id
        schema.remote_ref: refRemote: $ref to $ref finds location-independent $id
    "#]],
    );
}

#[test]
fn every_optional_test_of_draft_2020_12_comes_out_right_or_is_refused_by_name() {
    check(
        "draft2020-12/optional",
        None,
        &expect![[r#"
        right: 157, of these by the walk: 18
        schema.remote_ref: cross-draft: refs to historic drafts are processed as historic drafts
        schema.unknown_dialect: format-assertion: schema that uses custom metaschema with format-assertion: false
        schema.unknown_dialect: format-assertion: schema that uses custom metaschema with format-assertion: true
    "#]],
    );
}

#[test]
fn every_optional_test_of_draft_7_comes_out_right_or_is_refused_by_name() {
    check(
        "draft7/optional",
        Some(DRAFT_7),
        &expect![[r#"
        right: 116, of these by the walk: 9
        schema.remote_ref: cross-draft: refs to future drafts are processed as future drafts
    "#]],
    );
}

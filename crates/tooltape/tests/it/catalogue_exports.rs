//! The tools of real catalogues in every provider's dialect.

use std::collections::BTreeMap;
use std::fmt::Write;

use expect_test::expect_file;
use tooltape::dialect::{Advert, Dialect, compile, export};

use crate::catalogue::{self, Document};
use crate::provider_rules::violations;

/// How much of each catalogue has to have a form in each dialect that is not strict.
const COMPILED_PERCENT_MIN: usize = 95;

#[test]
fn every_exported_tool_keeps_the_rules_of_its_provider() {
    let Some(documents) = catalogue::load() else { return };
    let mut broken = String::new();
    for (document, dialect) in pairs(documents) {
        let Ok(exported) = export(dialect, &advert(document)) else { continue };
        for violation in violations(dialect, &exported.tool) {
            let Document { catalogue, id, .. } = document;
            writeln!(broken, "{dialect} {catalogue}/{id}: {violation}").unwrap();
        }
    }
    assert_eq!(broken, "");
}

#[test]
fn a_compiled_schema_compiles_to_itself() {
    let Some(documents) = catalogue::load() else { return };
    for (document, dialect) in pairs(documents) {
        let Ok(once) = compile(&document.schema, dialect) else { continue };
        let twice = compile(once.schema(), dialect).expect("what the dialect takes has a form");
        assert_eq!(twice.schema(), once.schema(), "{dialect} {}", document.id);
    }
}

#[test]
fn every_refusal_of_a_catalogue_is_on_the_list() {
    let Some(documents) = catalogue::load() else { return };
    let mut refusals = String::new();
    for (document, dialect) in pairs(documents) {
        if let Err(err) = export(dialect, &advert(document)) {
            let Document { catalogue, id, .. } = document;
            writeln!(refusals, "{catalogue}/{id} {dialect} {}: {err}", err.rule()).unwrap();
        }
    }
    expect_file!["catalogue_refusals.txt"].assert_eq(&refusals);
}

#[test]
fn nearly_every_tool_of_every_catalogue_has_a_form_that_is_not_strict() {
    let Some(documents) = catalogue::load() else { return };
    let mut counts = BTreeMap::<_, (usize, usize)>::new();
    for (document, dialect) in pairs(documents) {
        let (compiled, all) = counts.entry((document.catalogue, dialect.name())).or_default();
        *compiled += usize::from(export(dialect, &advert(document)).is_ok());
        *all += 1;
    }
    for ((catalogue, dialect), (compiled, all)) in counts {
        eprintln!("{catalogue} {dialect}: {compiled} of {all}");
        let is_strict = dialect.ends_with("strict");
        assert!(
            is_strict || compiled * 100 >= all * COMPILED_PERCENT_MIN,
            "{catalogue} {dialect}: {compiled} of {all}"
        );
    }
}

fn pairs(documents: &[Document]) -> impl Iterator<Item = (&Document, Dialect)> {
    let pair = |document| Dialect::ALL.map(|dialect| (document, dialect));
    documents.iter().flat_map(pair)
}

fn advert(document: &Document) -> Advert<'_> {
    Advert { name: &document.name, description: &document.description, input: &document.schema }
}
